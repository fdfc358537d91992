"""What a run saw: the waist of the house. Everything after it is a function of this."""
