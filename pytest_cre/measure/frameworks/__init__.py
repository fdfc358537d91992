"""Readers of training logs, one module per framework: lines to steps and facts."""
