"""Scripts that run inside pods, mounted from a ConfigMap; each is one file without imports of ours."""
