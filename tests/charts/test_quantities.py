"""How far an axis reaches, and how numbers along it are said."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from evaluations.charts.estimates import (
    PlottedEstimate,
    Quantity,
    compute_axis_domain,
    make_share_quantity,
)


def one(value: float | None, low: float | None = None, high: float | None = None) -> PlottedEstimate:
    return PlottedEstimate("row", "series", value, low, high)


def test_an_axis_ends_at_round_numbers_around_the_intervals() -> None:
    # .32 to .71 is .39 long; a fifth of that is .078, so steps of .1.
    assert compute_axis_domain(make_share_quantity("Win rate"), [one(0.4, 0.32, 0.45), one(0.6, 0.55, 0.71)]) == [
        0.3,
        0.8,
    ]


def test_an_axis_holds_the_value_that_favours_nobody() -> None:
    # .5 to .71: a fifth is .042, so steps of .05.
    assert compute_axis_domain(make_share_quantity("Win rate"), [one(0.6, 0.55, 0.71)], also=[0.5]) == [0.5, 0.75]


def test_no_axis_reaches_beyond_what_is_possible() -> None:
    assert compute_axis_domain(make_share_quantity("Agreement"), [one(0.5, 0.01, 0.99)]) == [0, 1]
    assert compute_axis_domain(Quantity("Kappa", (-1.0, 1.0)), [one(-0.99), one(0.99)]) == [-1, 1]


def test_one_value_alone_has_room_beside_it() -> None:
    # With no length of its own an axis takes its steps of the value: a fifth of 1 is .2.
    assert compute_axis_domain(Quantity("Strength"), [one(0.0)]) == [-0.2, 0.2]
    assert compute_axis_domain(make_share_quantity("Agreement"), [one(1.0)]) == [0.8, 1.0]
    assert compute_axis_domain(make_share_quantity("Agreement"), []) == [0, 1]


@given(some.lists(some.floats(-1e6, 1e6).map(lambda value: round(value, 3)), min_size=1, max_size=9))
def test_every_value_lies_on_its_axis(values: list[float]) -> None:
    low, high = compute_axis_domain(Quantity("Strength"), [one(value) for value in values])
    assert low < high
    assert all(low - 1e-9 <= value <= high + 1e-9 for value in values)


def test_shares_are_said_in_percent_and_others_with_two_places() -> None:
    assert make_share_quantity("Agreement").format_value(0.7149) == "71.5%"
    assert Quantity("Kappa", (-1.0, 1.0)).format_value(-0.023) == "−0.02"
    assert make_share_quantity("Agreement").format_interval(one(0.7, 0.6, 0.8)) == "60.0% to 80.0%"


@pytest.mark.parametrize("quantity", [make_share_quantity("Agreement"), Quantity("Kappa", (-1.0, 1.0))])
def test_what_is_missing_is_not_nought(quantity: Quantity) -> None:
    assert quantity.format_value(None) == "n/a"
    assert quantity.format_interval(one(0.7)) == "none"
