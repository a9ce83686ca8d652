"""The one table of consolidation, worked by hand."""

import pytest

from evaluations.domain.choices import (
    Choice,
    ConsolidatedChoice,
    ShownOrder,
    choice_from_scores,
    consolidate_orders,
    plurality_choice,
)
from evaluations.domain.rubrics import AspectSpec
from evaluations.domain.texts import replace_unstorable

A, B, TIE, BAD = Choice.A, Choice.B, Choice.TIE, Choice.BOTH_BAD
STORED, SWAPPED, ALL = ShownOrder.AS_STORED, ShownOrder.SWAPPED, ShownOrder.FOLDED
BOTH = {STORED, SWAPPED}


@pytest.mark.parametrize(
    ("choices", "expected"),
    [([A], A), ([A, A, B], A), ([A, B], TIE), ([A, B, TIE], TIE), ([A, A, B, B, TIE], TIE), ([BAD, BAD, A], BAD)],
)
def test_the_plurality_of_samples_is_a_tie_where_no_single_choice_leads(choices: list[Choice], expected: str) -> None:
    assert plurality_choice(choices) == expected


@pytest.mark.parametrize(
    ("stored", "swapped", "choice", "inconsistent"),
    [
        (A, A, A, False),
        (A, B, TIE, True),
        (A, TIE, TIE, True),
        (TIE, TIE, TIE, False),
        (BAD, BAD, BAD, False),
        (BAD, TIE, TIE, False),  # both_bad counts as tie where orders are consolidated
        (BAD, B, TIE, True),
    ],
)
def test_two_orders_make_one_verdict(stored: Choice, swapped: Choice, choice: str, inconsistent: bool) -> None:
    folded = consolidate_orders({STORED: [ConsolidatedChoice(stored)], SWAPPED: [ConsolidatedChoice(swapped)]}, BOTH)
    assert folded == ConsolidatedChoice(Choice(choice), inconsistent)


def test_an_order_that_was_asked_and_has_no_answer_makes_the_verdict_missing() -> None:
    assert consolidate_orders({STORED: [ConsolidatedChoice(A)]}, BOTH) is None
    assert consolidate_orders({}, set()) is None
    assert consolidate_orders({STORED: [ConsolidatedChoice(A)]}, {STORED}) == ConsolidatedChoice(A)


def test_a_choice_from_both_orders_together_keeps_its_mark() -> None:
    assert consolidate_orders({ALL: [ConsolidatedChoice(TIE, inconsistent=True)]}, {ALL}) == ConsolidatedChoice(
        TIE, inconsistent=True
    )


def test_the_samples_of_an_order_are_counted_before_the_orders_are_compared() -> None:
    # As stored A, A, B -> A; swapped A -> A: together A although one sample said B.
    given = {
        STORED: [ConsolidatedChoice(A), ConsolidatedChoice(A), ConsolidatedChoice(B)],
        SWAPPED: [ConsolidatedChoice(A)],
    }
    assert consolidate_orders(given, BOTH) == ConsolidatedChoice(A)


@pytest.mark.parametrize(
    ("score_a", "score_b", "margin", "expected"),
    [
        (4, 3, 0, A),
        (3, 4, 0, B),
        (3, 3, 0, TIE),
        (4, 3, 1, TIE),
        (4.5, 3, 1, A),
        (0.3, 0.2, 0.1, TIE),  # 0.3 - 0.2 is 0.09999999999999998 in binary, and 0.8 - 0.7 is 0.10000000000000009
        (0.8, 0.7, 0.1, TIE),
        (None, 3, 0, None),
        (3, None, 5, None),
    ],
)
def test_two_scores_make_a_choice_beyond_the_margin(
    score_a: float | None, score_b: float | None, margin: float, expected: Choice | None
) -> None:
    assert choice_from_scores(score_a, score_b, margin) == expected


def test_an_aspect_offers_its_choices_in_page_order() -> None:
    assert AspectSpec("x", "X", "").choices == (A, TIE, B)
    assert AspectSpec("x", "X", "", offers_tie=False).choices == (A, B)
    assert AspectSpec("x", "X", "", offers_both_bad=True).choices == (A, TIE, BAD, B)


def test_what_no_database_stores_becomes_the_replacement_character() -> None:
    assert replace_unstorable("a\x00b\ud800c\U0001f600") == "a\ufffdb\ufffdc\U0001f600"
