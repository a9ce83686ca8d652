"""Every state, outcome and order has its words."""

from evaluations.domain.choices import ShownOrder
from evaluations.domain.files import ImportState
from evaluations.domain.judges import FAILURE_STATES, AttemptOutcome, AttemptStep, CallState, RunOrders, RunState
from evaluations.domain.reviews import Reveal
from evaluations.judges.runs.selection import RETRYABLE_STATES
from evaluations.templatetags.states import (
    Badge,
    attempt_badge,
    call_tone,
    import_badge,
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
