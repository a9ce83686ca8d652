"""The worker of rule-based judges."""

from collections.abc import Callable
from functools import partial

from evaluations.domain.judges import CallState
from evaluations.domain.texts import PairTexts
from evaluations.judge_prompts.baseline_rules import BASELINE_RULES, RuleQuestion
from evaluations.judges.calls.claims import claim_calls
from evaluations.judges.calls.outcome_store import store_outcomes
from evaluations.judges.calls.work_session import CallOutcome, ClaimedCall, WorkSession
from evaluations.models.transactions import SHORT_TRANSACTION_ROWS, is_time_up, pause_after_transaction


def work_baseline_run(session: WorkSession, *, until: float, hand_over: Callable[[], None]) -> None:
    """Answer pending calls until that moment of the monotonic clock; ``hand_over`` is called if time runs out first."""
    while not is_time_up(until):
        with pause_after_transaction():
            calls = claim_calls(session, SHORT_TRANSACTION_ROWS).calls
            if not calls:
                return
            store_outcomes(session, [baseline_outcome(session, call) for call in calls])
    hand_over()


def baseline_outcome(session: WorkSession, call: ClaimedCall) -> CallOutcome:
    """The rule's choice per aspect, in terms of A and B as stored. Each sample has its own seed."""
    assert isinstance(call.texts, PairTexts)  # rules are pairwise
    assert call.comparison_id is not None
    rule, seed = BASELINE_RULES[session.judge.model], (session.judge.seed or 0) + call.sample
    make_question = partial(RuleQuestion, call.comparison_id, call.texts, call.shown)
    choices = {aspect.key: rule(make_question(aspect, seed)) for aspect in session.spec.aspects}
    return CallOutcome(call, CallState.ANSWERED, choices=choices)
