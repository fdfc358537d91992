"""What can be certified and by which limits: pure data, read from suites and profiles."""
