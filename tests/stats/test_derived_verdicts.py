"""Derived choices: from scores, and from the judges of a panel."""

import numpy as np

from evaluations.domain.choices import PACKED_CHOICES, PACKED_ORDERS, Choice, ShownOrder, choice_from_scores
from evaluations.domain.judges import CallState
from evaluations.domain.reports import FailedRule
from evaluations.stats.coding import FOLDED, MISSING
from evaluations.stats.judge_verdicts import (
    STATES,
    ConsolidatedVerdicts,
    Derivation,
    JudgeAnswers,
    JudgeVerdicts,
    UnansweredCalls,
    consolidate_verdicts,
    mean_by_unit,
    panel_verdicts,
    verdicts_from_scores,
)

A, B, TIE, BAD = Choice.A, Choice.B, Choice.TIE, Choice.BOTH_BAD
NAN = float("nan")


def numbers(*values: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array(values, dtype=np.int64)


def test_the_mean_is_taken_over_the_samples_and_is_missing_where_there_is_none() -> None:
    # Unit 0: (2 + 3) / 2; unit 1: none; unit 2: 4.
    found = mean_by_unit(numbers(0, 2, 0), np.array([2.0, 4.0, 3.0]), 3)
    assert found.tolist()[::2] == [2.5, 4.0]
    assert np.isnan(found[1])


def test_the_higher_score_wins_and_within_the_margin_it_is_a_tie() -> None:
    # 4 : 3 A, 2 : 5 B, 3 : 3 tie, 0.8 : 0.7 exactly the margin of 0.1, ? : 3 and 3 : ? missing.
    a, b = np.array([4, 2, 3, 0.8, NAN, 3]), np.array([3, 5, 3, 0.7, 3, NAN])
    found = verdicts_from_scores(a, b, 0.1)
    (folded,) = found.answers
    assert folded.item.tolist() == [0, 1, 2, 3]
    assert [PACKED_CHOICES[code] for code in folded.choice] == [A, B, TIE, TIE]
    assert folded.shown == FOLDED


def known(score: float) -> float | None:
    return None if np.isnan(score) else float(score)


def test_at_random_it_is_what_the_domain_says_one_by_one() -> None:
    rng = np.random.default_rng(1)
    for margin in (0.0, 0.1, 0.5):
        a, b = (np.where(rng.random(300) < 0.2, NAN, rng.integers(0, 11, 300) / 10) for _ in range(2))
        (found,) = verdicts_from_scores(a, b, margin).answers
        told = {int(item): PACKED_CHOICES[code] for item, code in zip(found.item, found.choice, strict=True)}
        pairs = zip(map(known, a), map(known, b), strict=True)
        one_by_one = [choice_from_scores(one, other, margin) for one, other in pairs]
        assert [told.get(item) for item in range(300)] == one_by_one


def member(
    name: str, choices: "list[Choice | CallState | None]", failed: FailedRule = FailedRule.EXCLUDE
) -> tuple[str, ConsolidatedVerdicts]:
    """A judge asked once, in the stored order; a state is a call without an answer, None was never asked."""
    given = [(item, PACKED_CHOICES.index(one)) for item, one in enumerate(choices) if isinstance(one, Choice)]
    lacking = [(item, STATES.index(one)) for item, one in enumerate(choices) if isinstance(one, CallState)]
    item, choice = numbers(*(one for one, _ in given)), numbers(*(code for _, code in given))
    at, state = numbers(*(one for one, _ in lacking)), numbers(*(code for _, code in lacking))
    order = PACKED_ORDERS.index(ShownOrder.AS_STORED)
    verdicts = JudgeVerdicts((JudgeAnswers(order, item, choice.astype(np.int8), is_single=True),))
    unanswered = UnansweredCalls(at, np.full(len(at), order), state)
    return name, consolidate_verdicts(verdicts, unanswered, len(choices), failed)


def panel_says(*members: tuple[str, ConsolidatedVerdicts]) -> "tuple[list[Choice | None], int | None, list[int]]":
    """The panel's choices, its splits, and the comparisons on which it is incomplete."""
    own, derived = panel_verdicts(dict(members), 5)
    incomplete = [int(item) for item in np.flatnonzero(own.incomplete)]
    assert derived == Derivation("panel", judges=tuple(name for name, _ in members), n_split=derived.n_split)
    return [None if code == MISSING else PACKED_CHOICES[code] for code in own.choice], derived.n_split, incomplete


def test_a_panel_says_what_more_than_half_of_its_answering_judges_say_else_a_tie() -> None:
    # 0: A A B → A. 1: B B B → B. 2: A tie B → no majority, a tie. 3: the second failed, A A → A.
    # 4: the third was never asked, A B → no majority of two, a tie.
    one = member("one", [A, B, A, A, A])
    two = member("two", [A, B, TIE, CallState.UNREADABLE, B])
    three = member("three", [B, B, B, A, None])
    assert panel_says(one, two, three) == ([A, B, TIE, A, TIE], 2, [])


def test_a_panel_of_which_fewer_than_half_answered_says_nothing() -> None:
    # 0: one of three → missing. 1: none → missing. 2: two of three, B B → B. 3: all of them.
    failed = CallState.FAILED
    one = member("one", [A, failed, B, B, None])
    two = member("two", [failed, failed, failed, TIE, None])
    three = member("three", [failed, failed, B, TIE, None])
    assert panel_says(one, two, three) == ([None, None, B, TIE, None], 0, [0, 1])


def test_half_of_an_even_panel_is_enough_and_two_that_differ_make_a_tie() -> None:
    # 0: one of two, B → B. 1: B A → a tie. 2: A A → A.
    one, two = member("one", [B, B, A, None, None]), member("two", [CallState.REFUSED, A, A, None, None])
    assert panel_says(one, two) == ([B, TIE, A, None, None], 1, [])


def test_failures_that_count_as_ties_are_votes_of_the_panel_and_what_waits_is_not() -> None:
    # 0: B tie tie → tie, the two failed for good. 1: B B, and one that waits → B. 2: tie tie → tie.
    failed, waits = CallState.FAILED, CallState.PENDING
    one = member("one", [B, B, failed, None, None], FailedRule.TIE)
    two = member("two", [failed, B, failed, None, None], FailedRule.TIE)
    three = member("three", [failed, waits, None, None, None], FailedRule.TIE)
    assert panel_says(one, two, three) == ([TIE, B, TIE, None, None], 0, [])
