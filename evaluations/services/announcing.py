"""What webhooks may have to be told, noted in the transaction of the change itself.

Only that something happened is noted here: whether there is anything to tell, and in which words, is found out in
the background, so that nobody who saves waits for it. And nobody's work is lost for it: what cannot be noted is
logged, and the change stands.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from django.db import models, transaction

from evaluations.domain import HookKind
from evaluations.models import Announcement, Evaluation, Pick, Review, Webhook

logger = logging.getLogger(__name__)

Subjects = Iterator[tuple[HookKind, int]]


def of_review(review: models.Model) -> Subjects:
    assert isinstance(review, Review)
    yield HookKind.DISAGREEMENT_OPENED, review.comparison_id
    # A review that came another way counts in a round that holds the comparison all the same.
    rounds = Pick.objects.filter(item__comparison=review.comparison_id, round__closed_at__isnull=True)
    for pk in rounds.values_list("round", flat=True):
        yield HookKind.ROUND_REVIEWED, pk


def of_run(kind: HookKind) -> Callable[[models.Model], Subjects]:
    return lambda run: iter([(kind, run.pk)])


# By the type of what an Event is about, and its verb.
ANNOUNCED: Final[Mapping[tuple[str, str], Callable[[models.Model], Subjects]]] = {
    ("run", "finished"): of_run(HookKind.RUN_FINISHED),
    ("run", "stopped"): of_run(HookKind.RUN_STOPPED),
    ("review", "saved first choices"): of_review,
    ("review", "saved final choices"): of_review,
}


def announce(verb: str, about: models.Model, evaluation: Evaluation | None) -> None:
    """Note it for every webhook of the evaluation that wants to be told of such."""
    subjects = ANNOUNCED.get((about._meta.model_name or "", verb))
    if subjects is None or evaluation is None:
        return
    listening = list(Webhook.objects.filter(evaluation=evaluation, stopped_at__isnull=True))
    if not listening:
        return
    try:
        with transaction.atomic():
            note(listening, subjects(about))
    except Exception:
        logger.exception("webhooks of %s: “%s” of %s %s was not noted", evaluation.slug, verb, about._meta, about.pk)


def note(listening: Sequence[Webhook], subjects: Subjects) -> None:
    noted = list(subjects)
    Announcement.objects.bulk_create(
        Announcement(webhook=webhook, kind=kind, subject=subject)
        for webhook in listening
        for kind, subject in noted
        if kind in webhook.wanted
    )
