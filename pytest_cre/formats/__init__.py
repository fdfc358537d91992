"""Text formats: YAML with places, quantities, durations, selectors, patches."""
