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


def work_baseline_run(bout: WorkSession, *, until: float, hand_over: Callable[[], None]) -> None:
    """Answer what waits until that moment of the monotonic clock; ``hand_over`` if time is up first."""
    while not is_time_up(until):
        with pause_after_transaction():
            calls = claim_calls(bout, SHORT_TRANSACTION_ROWS).questions
            if not calls:
                return
            store_outcomes(bout, [baseline_outcome(bout, held) for held in calls])
    hand_over()


def baseline_outcome(bout: WorkSession, held: ClaimedCall) -> CallOutcome:
    """The rule's choice on every aspect, in terms of A and B as stored. Each sample has a seed of its own."""
    assert isinstance(held.texts, PairTexts)  # a rule compares: no pointwise judge is made of one
    assert held.comparison_id is not None
    rule, seed = BASELINE_RULES[bout.judge.model], (bout.judge.seed or 0) + held.sample
    about = partial(RuleQuestion, held.comparison_id, held.texts, held.shown)
    return CallOutcome(held, CallState.ANSWERED, choices={one.key: rule(about(one, seed)) for one in bout.spec.aspects})
