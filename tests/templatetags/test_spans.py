"""Estimates as people say them."""

from evaluations.judges.runs.estimates import ValueRange
from evaluations.templatetags.numbers import minutes_span, span, usd_span


def test_both_ends_have_two_figures() -> None:
    assert span(ValueRange(1234, 98765)) == "1,200 to 99,000"
    assert usd_span(ValueRange(1_234_567_890, 4_200_000_000)) == "$1.20 to $4.20"
    assert minutes_span(ValueRange(0.5, 61)) == "30 seconds to 1 hour 1 minute"


def test_ends_that_say_the_same_are_said_once() -> None:
    assert span(ValueRange(40, 40.2)) == "40"
    assert usd_span(ValueRange(0, 0)) == "$0.00"
