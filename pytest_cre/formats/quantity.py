"""Kubernetes quantities such as `500m` or `2Gi`, and message sizes such as `16G`."""

import re
from decimal import Decimal, localcontext

_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_QUANTITY = re.compile(
    r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:(Ki|Mi|Gi|Ti|Pi|Ei)|([eE][+-]?[0-9]{1,3})|(n|u|m|k|M|G|T|P|E))?",
    re.ASCII,
)
_LONGEST = 64
_DIGITS = 128  # enough to hold the longest quantity exactly
_MESSAGE = re.compile(r"([0-9]{1,18})([KMGT]?)", re.ASCII)
_MESSAGE_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
_STEPS = ("B", "KiB", "MiB", "GiB", "TiB")


def parse_quantity(text: str | float) -> Decimal:
    """Return the value of a quantity by the API's own grammar; raises `ValueError`."""
    whole = str(text)
    found = _QUANTITY.fullmatch(whole) if len(whole) <= _LONGEST else None
    if found is None:
        raise ValueError(f"must be a quantity such as 500m, 4 or 2Gi, got {whole[:_LONGEST]!r}")
    number, binary, exponent, decimal = found.groups()
    power = int(exponent[1:]) if exponent else _DECIMAL[decimal or ""]
    with localcontext(prec=_DIGITS):
        if binary:
            return Decimal(number) * Decimal(1 << 10 * _BINARY[binary])
        return Decimal(number).scaleb(power)


def parse_amount(resource: str, amount: str) -> Decimal:
    """Return how much of a resource a container asks for; raises `ValueError`.

    Devices, whose names hold a slash, are asked for whole.
    """
    count = parse_quantity(amount)
    if count < 0 or ("/" in resource and count % 1):
        words = "a whole number" if "/" in resource else "nothing below 0"
        raise ValueError(f"must be {words}, got {amount[:_LONGEST]!r}")
    return count


def parse_message_bytes(text: str | int) -> int:
    """Return the bytes of a message size as nccl-tests reads it: K, M, G, T are powers of 1024."""
    found = _MESSAGE.fullmatch(str(text))
    if found is None:
        raise ValueError(f"must be a size such as 8, 512M or 16G, got {str(text)[:_LONGEST]!r}")
    return int(found[1]) << (10 * _MESSAGE_POWERS[found[2]])


def format_bytes(size: int) -> str:
    """Return a size as `16 GiB`, `1.5 MiB` or `8 B`."""
    step = min(max(abs(size).bit_length() - 1, 0) // 10, len(_STEPS) - 1)
    text = f"{size / 1024**step:.2f}"
    return f"{text.rstrip('0').rstrip('.')} {_STEPS[step]}"
