"""The shipped suites: entries as YAML, and the thin test functions that run them."""
