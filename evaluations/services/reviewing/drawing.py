"""What chance decides for one person and one comparison.

A keyed draw instead of a stored one: the same person meets the same comparison in the same way
however often they open it, nobody can foresee it, and looking at a page writes nothing. What was
drawn is stored with the review, at its first save.
"""

from django.utils.crypto import salted_hmac

from evaluations.domain import Reveal, Shown
from evaluations.models import Comparison, Evaluation, User


def drawn(what: str, user: User, comparison: Comparison) -> bool:
    """Heads or tails, independent for every question, person and comparison."""
    mac = salted_hmac(f"judgeweb.{what}", f"{user.pk}:{comparison.pk}", algorithm="sha256")
    return bool(mac.digest()[0] & 1)


def order_shown(user: User, comparison: Comparison) -> Shown:
    """Which response stands on the left for this person."""
    return Shown.SWAPPED if drawn("order", user, comparison) else Shown.AS_STORED


def judge_stands_from_the_start(evaluation: Evaluation, user: User, comparison: Comparison) -> bool:
    """Whether this person sees the judge's choices before making their own."""
    if evaluation.shown_judge_id is None:
        return False
    if evaluation.reveal == Reveal.RANDOMISED:
        return drawn("reveal", user, comparison)
    return evaluation.reveal == Reveal.SHOWN
