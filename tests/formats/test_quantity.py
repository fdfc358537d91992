from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_cre.formats.quantity import format_bytes, parse_message_bytes, parse_quantity


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("100m", "0.1"), ("4", "4"), ("1.5Gi", "1610612736"), ("12k", "12000"), ("5E", "5e18")],
        *[("1e3", "1000"), ("1E3", "1000"), ("5e-1", "0.5"), ("1Ei", "1152921504606846976")],
        *[("2113479888Ki", "2164203405312"), ("+1", "1"), ("-2", "-2"), (".5", "0.5"), ("5.", "5")],
        *[("1n", "1e-9"), ("1u", "1e-6"), (8, "8"), (0.5, "0.5")],
        ("9223372036854775807Ei", str(9223372036854775807 * 1024**6)),
    ],
)
def test_quantity_is_read_by_the_api_grammar(text, value):
    assert parse_quantity(text) == Decimal(value)


@pytest.mark.parametrize(
    "text",
    [
        *["", "12K", "1 Gi", " 1", "1_000", "\u0661", "Infinity", "NaN", "1gi", "--1", "1e"],
        *["Gi", ".", "1.5.2", "1e9999", "9" * 70, True],
    ],
)
def test_quantity_that_kubernetes_refuses_is_refused(text):
    with pytest.raises(ValueError, match="must be a quantity such as 500m, 4 or 2Gi, got"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8", 8),
        ("1K", 1024),
        ("512M", 512 * 1024**2),
        ("16G", 17179869184),
        ("1T", 1024**4),
        (8, 8),
    ],
    ids=repr,
)
def test_message_size_counts_in_powers_of_1024(text, size):
    assert parse_message_bytes(text) == size


@pytest.mark.parametrize("text", ["", "16GB", "1.5G", "-8", "16 G", "G", "1e3", "16Gi", "9" * 19])
def test_message_size_of_another_form_is_refused(text):
    with pytest.raises(ValueError, match="must be a size such as 8, 512M or 16G, got"):
        parse_message_bytes(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        *[(0, "0 B"), (8, "8 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB")],
        *[(17179869184, "16 GiB"), (1024**2 - 1, "1024 KiB"), (2**50, "1024 TiB")],
    ],
)
def test_size_is_shown_in_binary_units(size, text):
    assert format_bytes(size) == text


@given(st.integers(0, 10**18))
def test_shown_size_starts_with_a_number_below_1025_or_is_in_the_largest_unit(size):
    number, unit = format_bytes(size).split()
    assert float(number) <= 1024 or unit == "TiB"


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_refused(text):
    told = "one line"
    try:
        assert parse_quantity(text).is_finite()
    except ValueError as problem:
        told = str(problem)
    assert len(told.splitlines()) == 1
