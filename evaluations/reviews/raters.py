"""The rater row of a user in an evaluation."""

from evaluations.domain.roles import RaterKind
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.users import User


def find_rater_of_user(user: User, evaluation: Evaluation) -> Rater | None:
    return Rater.objects.filter(evaluation=evaluation, user=user).first()


def get_or_create_rater(user: User, evaluation: Evaluation) -> Rater:
    """This user's rater row, created on first need. An imported rater may already have the name."""
    existing = find_rater_of_user(user, evaluation)
    if existing is not None:
        return existing
    namesakes = Rater.objects.filter(evaluation=evaluation, kind=RaterKind.HUMAN, name=user.username, user__isnull=True)
    name = f"{user.username} (account)" if namesakes.exists() else user.username
    rater, _ = Rater.objects.get_or_create(
        evaluation=evaluation, user=user, defaults={"kind": RaterKind.HUMAN, "name": name}
    )
    return rater
