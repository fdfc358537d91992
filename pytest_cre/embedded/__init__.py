"""A small Kubernetes API server for trying things without Kubernetes."""
