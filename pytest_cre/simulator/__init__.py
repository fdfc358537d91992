"""Simulated GPU nodes for any Kubernetes API server."""
