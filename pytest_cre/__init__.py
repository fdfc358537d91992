"""Certify Kubernetes GPU clusters with pytest."""

__version__ = "0.1.0"
