"""Genuine Kubernetes on this machine: built from Go modules, started, stopped; no containers."""
