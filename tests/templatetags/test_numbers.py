"""Numbers, money and estimates as pages show them."""

import pytest

from evaluations.judges.runs.estimates import ValueRange
from evaluations.templatetags.numbers import in_usd, minutes_span, span, usd, usd_span


@pytest.mark.parametrize(
    ("nano", "shown"),
    [
        (None, "unknown"),
        (0, "$0.00"),
        (1, "$0.0000000010"),
        (34_000, "$0.000034"),
        (4_200_000, "$0.0042"),
        (9_960_000, "$0.0100"),
        (10_500_000, "$0.011"),
        (100_000_000, "$0.10"),
        (1_500_000_000, "$1.50"),
        (12_345_678_900_000, "$12,345.68"),
    ],
)
def test_dollars_have_two_places_and_small_amounts_two_figures(nano: int | None, shown: str) -> None:
    assert usd(nano) == shown


@pytest.mark.parametrize(
    ("nano", "shown"), [(None, ""), (0, "0.00"), (1, "0.000000001"), (2_500_000_000, "2.50"), (10**13, "10000.00")]
)
def test_a_field_holds_the_exact_amount(nano: int | None, shown: str) -> None:
    assert in_usd(nano) == shown


def test_both_ends_have_two_figures() -> None:
    assert span(ValueRange(1234, 98765)) == "1,200 to 99,000"
    assert usd_span(ValueRange(1_234_567_890, 4_200_000_000)) == "$1.20 to $4.20"
    assert minutes_span(ValueRange(0.5, 61)) == "30 seconds to 1 hour 1 minute"


def test_ends_that_say_the_same_are_said_once() -> None:
    assert span(ValueRange(40, 40.2)) == "40"
    assert usd_span(ValueRange(0, 0)) == "$0.00"
