"""Numbers and limits to verdicts. Pure."""
