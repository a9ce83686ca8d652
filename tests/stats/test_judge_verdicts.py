from collections.abc import Mapping

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations.domain.choices import (
    PACKED_CHOICES,
    PACKED_ORDERS,
    Choice,
    ConsolidatedChoice,
    ShownOrder,
    consolidate_orders,
)
from evaluations.domain.judges import CallState
from evaluations.domain.reports import FailedRule
from evaluations.stats.coding import MISSING, TIE, A
from evaluations.stats.judge_verdicts import (
    STATES,
    ConsolidatedVerdicts,
    JudgeAnswers,
    JudgeVerdicts,
    UnansweredCalls,
    consolidate_verdicts,
)

Given = Mapping[ShownOrder, list[ConsolidatedChoice]]
Asked = frozenset[ShownOrder]

choices = st.builds(ConsolidatedChoice, st.sampled_from(Choice), st.booleans())
answers = st.dictionaries(st.sampled_from(ShownOrder), st.lists(choices, max_size=4), max_size=3)
comparisons = st.lists(
    st.tuples(answers, st.frozensets(st.sampled_from(ShownOrder), max_size=3)), min_size=1, max_size=6
)


def as_arrays(material: list[tuple[Given, Asked]]) -> tuple[JudgeVerdicts, UnansweredCalls]:
    """The same comparisons as the columns that a database gives."""
    rows = [
        (item, PACKED_ORDERS.index(shown), PACKED_CHOICES.index(one.choice), one.inconsistent)
        for item, (given_, _) in enumerate(material)
        for shown, samples in given_.items()
        for one in samples
    ]
    item, order, choice, marked = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    calls = [
        (item, PACKED_ORDERS.index(shown), STATES.index(CallState.UNREADABLE))
        for item, (given_, asked) in enumerate(material)
        for shown in asked
        if not given_.get(shown)
    ]
    open_calls = np.array(calls, dtype=np.int64).reshape(-1, 3).T
    answers = [JudgeAnswers(shown, item[order == shown], choice[order == shown].astype(np.int8)) for shown in range(4)]
    return JudgeVerdicts(tuple(answers), item[marked == 1]), UnansweredCalls(*open_calls)


def consolidated(
    answered: Mapping[ShownOrder, list[Choice]],
    *unanswered: tuple[ShownOrder, CallState],
    failed: FailedRule = FailedRule.EXCLUDE,
) -> ConsolidatedVerdicts:
    verdicts, _ = as_arrays(
        [({shown: [ConsolidatedChoice(one) for one in made] for shown, made in answered.items()}, frozenset())]
    )
    columns = [(0, PACKED_ORDERS.index(shown), STATES.index(state)) for shown, state in unanswered]
    calls = UnansweredCalls(*np.array(columns, dtype=np.int64).reshape(-1, 3).T)
    return consolidate_verdicts(verdicts, calls, 1, failed)


@given(comparisons)
@settings(max_examples=400)
def test_all_at_once_says_what_folding_one_by_one_says(material: list[tuple[Given, Asked]]) -> None:
    found = consolidate_verdicts(*as_arrays(material), len(material))
    for item, (given_, asked) in enumerate(material):
        alone = consolidate_orders({shown: samples for shown, samples in given_.items() if samples}, asked)
        code = MISSING if alone is None else PACKED_CHOICES.index(alone.choice)
        assert found.choice[item] == code
        assert found.inconsistent[item] == (alone is not None and alone.inconsistent)


def test_an_order_that_failed_leaves_the_verdict_out_and_is_counted() -> None:
    found = consolidated({ShownOrder.AS_STORED: [Choice.A]}, (ShownOrder.SWAPPED, CallState.REFUSED))
    assert found.choice.tolist() == [MISSING]
    assert found.incomplete.tolist() == [True]


def test_a_failed_verdict_can_count_as_a_tie() -> None:
    found = consolidated({}, (ShownOrder.UNKNOWN, CallState.UNREADABLE), failed=FailedRule.TIE)
    assert found.choice.tolist() == [TIE]
    assert not found.inconsistent.any()


def test_what_waits_to_be_asked_is_no_failure_and_no_tie() -> None:
    for state in (CallState.PENDING, CallState.RUNNING, CallState.CANCELLED):
        found = consolidated(
            {}, (ShownOrder.AS_STORED, CallState.FAILED), (ShownOrder.SWAPPED, state), failed=FailedRule.TIE
        )
        assert found.choice.tolist() == [MISSING]


def test_a_failed_sample_does_not_spoil_the_order_that_other_samples_answered() -> None:
    found = consolidated({ShownOrder.AS_STORED: [Choice.A]}, (ShownOrder.AS_STORED, CallState.FAILED))
    assert found.choice.tolist() == [A]
    assert not found.incomplete.any()


def test_one_answer_each_needs_no_counting_and_comes_to_the_same() -> None:
    item, choice = np.array([2, 0, 3]), np.array([1, 0, 2], dtype=np.int8)
    nothing = UnansweredCalls(*np.empty((3, 0), dtype=np.int64))
    counted, taken = (
        consolidate_verdicts(JudgeVerdicts((JudgeAnswers(0, item, choice, is_single=single),)), nothing, 5)
        for single in (False, True)
    )
    assert counted.choice.tolist() == taken.choice.tolist() == [A, MISSING, 1, 2, MISSING]
    assert taken.asked.tolist() == [True, False, True, True, False]
