"""Why one chose otherwise than the judge or others: said, or changed, after the review was saved."""

from django.db import transaction

from evaluations.domain import InputRefused, Reason, ReviewState, Stage, storable
from evaluations.models import Aspect, Review, Score, User, Verdict
from evaluations.services.recording import record


@transaction.atomic
def explain(review: Review, aspect: Aspect, *, reason: str, note: str, user: User) -> None:
    """Put a reason and a note on one's own final choice. The choice stays as it is."""
    if review.rater.user_id != user.pk:
        raise InputRefused("Only who made a choice can say why.")
    if review.state != ReviewState.FINAL:
        raise InputRefused("Confirm your choices first: a reason stands on the final ones.")
    if reason and reason not in list(Reason):
        raise InputRefused("Choose one of the reasons, or none.")
    after = {"reason": reason, "note": storable(note.strip())}
    before = said_so_far(review, aspect)
    if before is None:
        raise InputRefused(f"You made no choice on {aspect.name} here.")
    if before == after:
        return
    for model in (Verdict, Score):
        model._default_manager.filter(review=review, aspect=aspect, stage=Stage.FINAL).update(**after)
    evaluation = review.comparison.evaluation
    record("explained", review, user=user, evaluation=evaluation, before=before, after={"aspect": aspect.key, **after})


def said_so_far(review: Review, aspect: Aspect) -> dict[str, str] | None:
    """None where the review has no final choice on the aspect."""
    about = {"review": review, "aspect": aspect, "stage": Stage.FINAL}
    row = Verdict.objects.filter(**about).first() or Score.objects.filter(**about).first()
    return {"reason": row.reason, "note": row.note} if row else None
