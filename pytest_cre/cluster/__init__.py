"""Talking to Kubernetes: the only room that imports its client, and only when needed."""
