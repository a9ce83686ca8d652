import numpy as np

from evaluations.domain.choices import PACKED_ORDERS
from evaluations.domain.reports import SideCoding
from evaluations.stats.coding import AS_STORED, MISSING, SWAPPED, TIE, A, B
from evaluations.stats.judge_agreement import NO_SHARED_VERDICT, judge_pair_agreements
from evaluations.stats.judge_verdicts import (
    ConsolidatedVerdicts,
    JudgeAnswers,
    JudgeVerdicts,
    UnansweredCalls,
    consolidate_verdicts,
)
from evaluations.stats.shown_coding import NO_ORDER, order_shown_to_judge

NOTHING = np.empty(0, dtype=np.int64)


def judge(orders: dict[int, list[int]]) -> ConsolidatedVerdicts:
    """Its choices by order shown, MISSING where it was not asked."""
    answers = []
    for shown, choices in orders.items():
        (item,) = np.nonzero(np.array(choices) != MISSING)
        answers.append(JudgeAnswers(shown, item, np.array(choices, dtype=np.int8)[item], is_single=True))
    items = len(next(iter(orders.values())))
    return consolidate_verdicts(JudgeVerdicts(tuple(answers)), UnansweredCalls(NOTHING, NOTHING, NOTHING), items)


def test_each_two_judges_are_held_together_on_what_both_have_a_verdict_on() -> None:
    own = {
        "one": judge({AS_STORED: [A, B, A, TIE]}),
        "two": judge({AS_STORED: [A, A, MISSING, TIE]}),
        "three": judge({AS_STORED: [MISSING, MISSING, A, MISSING]}),
    }
    found = {
        (pair.judge_1, pair.judge_2): pair
        for pair in judge_pair_agreements(own, {}, np.arange(4), 3, SideCoding.CANDIDATE)
    }
    assert list(found) == [("one", "two"), ("one", "three"), ("two", "three")]
    two = found["one", "two"]
    assert (two.with_ties.agree, two.with_ties.n, two.without_ties.agree, two.without_ties.n) == (2, 3, 1, 2)
    assert found["two", "three"].with_ties.agreement.why == NO_SHARED_VERDICT


def test_a_panel_is_not_held_against_the_judges_it_is_made_of() -> None:
    said = judge({AS_STORED: [A, B]})
    own = {"one": said, "two": said, "other": said, "panel: one, two": said}
    found = judge_pair_agreements(own, {"panel: one, two": ("one", "two")}, np.arange(2), 2, SideCoding.CANDIDATE)
    pairs = {(pair.judge_1, pair.judge_2) for pair in found}
    assert pairs == {("one", "two"), ("one", "other"), ("two", "other"), ("other", "panel: one, two")}


def test_by_place_they_need_the_same_one_known_order() -> None:
    # Both swapped on the first, of different orders on the second, both orders on the third.
    one = judge({SWAPPED: [A, MISSING, A], AS_STORED: [MISSING, A, A]})
    two = judge({SWAPPED: [A, A, A], AS_STORED: [MISSING, MISSING, A]})
    assert order_shown_to_judge(one).tolist() == [SWAPPED, AS_STORED, MISSING]
    (found,) = judge_pair_agreements({"one": one, "two": two}, {}, np.arange(3), 2, SideCoding.SHOWN)
    assert (found.with_ties.agree, found.with_ties.n) == (1, 1)
    unknown = judge({PACKED_ORDERS.index(PACKED_ORDERS[2]): [A, B, A]})
    (nothing,) = judge_pair_agreements({"one": one, "two": unknown}, {}, np.arange(3), 2, SideCoding.SHOWN)
    assert nothing.with_ties.agreement.why == NO_ORDER
