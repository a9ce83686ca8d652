"""Working the calls of a judge that is no LLM: a rule, applied where the rows lie."""

from collections.abc import Callable

from evaluations.domain import CallState, PairTexts
from evaluations.judge.rules import RULES
from evaluations.services.judging import claiming, storing
from evaluations.services.judging.working import Bout, Held, Outcome
from evaluations.services.pacing import ROWS_AT_ONCE, paced, time_is_up


def apply_rule(bout: Bout, *, until: float, hand_over: Callable[[], None]) -> None:
    """Answer what waits until that moment of the monotonic clock; ``hand_over`` if time is up first."""
    while not time_is_up(until):
        with paced():
            calls = claiming.claim(bout, ROWS_AT_ONCE, 0).questions
            if not calls:
                return
            storing.store(bout, [ruled(bout, held) for held in calls])
    hand_over()


def ruled(bout: Bout, held: Held) -> Outcome:
    """The rule's choice, the same for every aspect, whatever order was to be shown."""
    assert isinstance(held.texts, PairTexts)  # a rule compares: no pointwise judge is made of one
    choice = RULES[bout.judge.model](held.texts)
    return Outcome(held, CallState.ANSWERED, choices={aspect.key: choice for aspect in bout.spec.aspects})
