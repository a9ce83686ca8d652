"""Who a person is among the raters of an evaluation."""

from evaluations.domain import RaterKind
from evaluations.models import Evaluation, Rater, User


def rater_of(user: User, evaluation: Evaluation) -> Rater | None:
    return Rater.objects.filter(evaluation=evaluation, user=user).first()


def rater_for(user: User, evaluation: Evaluation) -> Rater:
    """This person as a rater here, made on first need. An imported person may have the name already."""
    known = rater_of(user, evaluation)
    if known is not None:
        return known
    taken = Rater.objects.filter(evaluation=evaluation, kind=RaterKind.HUMAN, name=user.username, user__isnull=True)
    name = f"{user.username} (account)" if taken.exists() else user.username
    rater, _ = Rater.objects.get_or_create(
        evaluation=evaluation, user=user, defaults={"kind": RaterKind.HUMAN, "name": name}
    )
    return rater
