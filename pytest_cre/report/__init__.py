"""Verdicts to text: terminal, JUnit, JSON. Pure."""
