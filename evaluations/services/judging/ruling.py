"""Working the calls of a judge that is no LLM: a rule, applied where the rows lie."""

from collections.abc import Callable
from functools import partial

from evaluations.domain import CallState, PairTexts
from evaluations.judge.rules import RULES, Question
from evaluations.services.judging import claiming, storing
from evaluations.services.judging.working import Bout, Held, Outcome
from evaluations.services.pacing import ROWS_AT_ONCE, paced, time_is_up


def apply_rule(bout: Bout, *, until: float, hand_over: Callable[[], None]) -> None:
    """Answer what waits until that moment of the monotonic clock; ``hand_over`` if time is up first."""
    while not time_is_up(until):
        with paced():
            calls = claiming.claim(bout, ROWS_AT_ONCE).questions
            if not calls:
                return
            storing.store(bout, [ruled(bout, held) for held in calls])
    hand_over()


def ruled(bout: Bout, held: Held) -> Outcome:
    """The rule's choice on every aspect, in terms of A and B as stored. Each sample has a seed of its own."""
    assert isinstance(held.texts, PairTexts)  # a rule compares: no pointwise judge is made of one
    assert held.comparison_id is not None
    rule, seed = RULES[bout.judge.model], (bout.judge.seed or 0) + held.sample
    about = partial(Question, held.comparison_id, held.texts, held.shown)
    return Outcome(held, CallState.ANSWERED, choices={one.key: rule(about(one, seed)) for one in bout.spec.aspects})
