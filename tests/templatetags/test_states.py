"""Every state, outcome, order, flag and mode has its words."""

import pytest

from evaluations.domain.choices import ShownOrder
from evaluations.domain.files import ImportState
from evaluations.domain.judges import (
    FAILURE_STATES,
    AttemptOutcome,
    AttemptStep,
    CallState,
    OutputMode,
    ReplyShape,
    RunOrders,
    RunState,
)
from evaluations.domain.reviews import Reveal
from evaluations.domain.texts import Flag
from evaluations.judges.runs.selection import RETRYABLE_STATES
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge
from evaluations.templatetags.states import (
    FLAGS,
    Badge,
    attempt_badge,
    call_tone,
    flags_in_words,
    import_badge,
    is_shown_in,
    mode_in_words,
    on_asking_again,
    orders_in_words,
    reveal_in_words,
    run_tone,
    shown_in_words,
    shown_to_judge,
    step_name,
)


def test_calls_without_a_verdict_and_stopped_runs_stand_out() -> None:
    assert {state for state in CallState if call_tone(state) == "warn"} == set(FAILURE_STATES)
    assert {state for state in RunState if run_tone(state) == "error"} == {RunState.STOPPED}


def test_every_one_has_words() -> None:
    assert all(map(on_asking_again, RETRYABLE_STATES))
    assert all(map(step_name, AttemptStep))
    assert all(map(orders_in_words, RunOrders))
    assert all(map(reveal_in_words, Reveal))
    assert all(attempt_badge(outcome).words for outcome in AttemptOutcome)
    assert all(import_badge(state).words for state in ImportState)


def test_a_request_that_failed_is_named_by_its_outcome_and_stands_out() -> None:
    assert attempt_badge(AttemptOutcome.TOO_LONG) == Badge("too long", "warn")
    assert attempt_badge(AttemptOutcome.ANSWERED) == Badge("answered")


def test_an_order_that_is_not_known_is_not_named() -> None:
    assert [shown_in_words(shown) for shown in ShownOrder] == ["A first", "B first", "", "both orders"]
    assert shown_to_judge(ShownOrder.UNKNOWN) == "order unknown"


def test_every_flag_has_words() -> None:
    assert set(FLAGS) == set(Flag)


def test_flags_are_read_as_a_row_keeps_them_or_one_by_one() -> None:
    assert flags_in_words("addresses_judge,forged_verdict") == ["addresses the judge", "forges a verdict"]
    assert flags_in_words(("forged_delimiter",)) == ["forges our delimiters"]
    assert flags_in_words("") == []


@pytest.mark.parametrize("mode", OutputMode)
@pytest.mark.parametrize("reply_shape", ["", *ReplyShape])
def test_every_way_of_asking_has_words(mode: OutputMode, reply_shape: str) -> None:
    words = mode_in_words(Judge(mode=mode, reply_shape=reply_shape))
    assert words.startswith("auto: ") is (mode == OutputMode.AUTO)


def test_no_judge_is_shown_where_none_is_chosen() -> None:
    evaluation = Evaluation()
    assert not is_shown_in(None, evaluation)
    assert not is_shown_in(Judge(pk=1), evaluation)
    assert is_shown_in(Judge(pk=1), Evaluation(shown_judge_id=1))
