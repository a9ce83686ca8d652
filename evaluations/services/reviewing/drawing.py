"""What chance decides for one person and one comparison.

A keyed draw instead of a stored one: the same person meets the same comparison in the same way
however often they open it, nobody can foresee it, and looking at a page writes nothing. What was
drawn is stored with the review, at its first save.
"""

from collections.abc import Sequence
from typing import TypeVar

from django.utils.crypto import salted_hmac

from evaluations.domain import JudgeKind, Reveal, Shown
from evaluations.judge.rules import WITHOUT_READING
from evaluations.models import Comparison, Evaluation, User

Side = TypeVar("Side")


def drawn(what: str, user: User, comparison: Comparison) -> bool:
    """Heads or tails, independent for every question, person and comparison."""
    mac = salted_hmac(f"judgeweb.{what}", f"{user.pk}:{comparison.pk}", algorithm="sha256")
    return bool(mac.digest()[0] & 1)


def order_shown(user: User, comparison: Comparison) -> Shown:
    """Which response stands on the left for this person."""
    return Shown.SWAPPED if drawn("order", user, comparison) else Shown.AS_STORED


def in_order_shown(user: User, comparison: Comparison, responses: Sequence[Side]) -> Sequence[Side]:
    """What belongs to response A and to response B, the left one first: for a person who may not see the names yet.

    A is always the candidate whose name sorts first, so one side that is known gives away that of other comparisons.
    """
    return responses[::-1] if order_shown(user, comparison) == Shown.SWAPPED else responses


def judge_stands_from_the_start(evaluation: Evaluation, user: User, comparison: Comparison) -> bool:
    """Whether this person sees the judge's choices before making their own. Rules that read no text are shown later."""
    if evaluation.reveal not in (Reveal.SHOWN, Reveal.RANDOMISED):
        return False
    judge = evaluation.shown_judge
    if judge is None or (judge.kind == JudgeKind.RULE and judge.model in WITHOUT_READING):
        return False
    return evaluation.reveal == Reveal.SHOWN or drawn("reveal", user, comparison)
