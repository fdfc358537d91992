"""The report as one HTML page that needs nothing else: no script, no other file."""
