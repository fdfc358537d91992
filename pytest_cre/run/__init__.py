"""Workflows on a cluster: created, watched, timed, captured, cleaned up."""
