"""Evidence to numbers. Pure: bytes in, numbers, reasons and flags out; nothing is judged here."""
