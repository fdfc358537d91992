"""Quantities in their canonical form, in which API servers store them: `1500m`, `1Gi`, `8`."""

import functools
from decimal import ROUND_UP, Decimal

from pytest_cre.formats.quantity import parse_quantity

_DECIMAL_SUFFIXES = {
    -9: "n",
    -6: "u",
    -3: "m",
    0: "",
    3: "k",
    6: "M",
    9: "G",
    12: "T",
    15: "P",
    18: "E",
}
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SMALLEST = Decimal(1).scaleb(-9)


@functools.lru_cache(maxsize=4096)
def canonical_quantity(text: str) -> str:
    """Give a quantity with the largest suffix of its sort that needs no fraction.

    Raises ValueError for what is no quantity.
    """
    text = text.strip()
    value = parse_quantity(text)
    if text.endswith("i"):
        if abs(value) >= 1024:
            return _binary(value)
        has_exponent = False
    else:
        has_exponent = "e" in text or ("E" in text and not text.endswith("E"))
    value = value.quantize(_SMALLEST, rounding=ROUND_UP)
    if not value:
        return "0"
    exponent = -9
    while exponent < 18 and value % Decimal(1).scaleb(exponent + 3) == 0:
        exponent += 3
    if has_exponent and exponent:
        return f"{value.scaleb(-exponent):f}".partition(".")[0] + f"e{exponent}"
    return f"{value.scaleb(-exponent):f}".partition(".")[0] + _DECIMAL_SUFFIXES[exponent]


def _binary(value: Decimal) -> str:
    whole = int(value.to_integral_value(rounding=ROUND_UP))
    step = 0
    while step < len(_BINARY_SUFFIXES) - 1 and whole % 1024 == 0:
        whole //= 1024
        step += 1
    return f"{whole}{_BINARY_SUFFIXES[step]}"
