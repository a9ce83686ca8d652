"""Writes that a program may send again: done once under a key, and answered the same way each time."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db import IntegrityError, transaction
from django.utils import timezone

from evaluations.models import ApiToken, KeptAnswer

KEPT: Final = timedelta(days=1)
DROPPED_AT_ONCE: Final = 500


@dataclass(frozen=True)
class Answer:
    status: int
    content_type: str
    location: str
    body: str


class OtherRequest(Exception):
    """The key was given to another request: a program gives each write a key of its own."""


class UnderWay(Exception):
    """The first request under this key has not been answered: it is at work still, or its process died at it."""


def begin(token: ApiToken, key: str, request_sha256: str) -> KeptAnswer | Answer:
    """The place in which the answer is to be kept, or the answer that was given already."""
    try:
        with transaction.atomic():
            return KeptAnswer.objects.create(token=token, key=key, request_sha256=request_sha256)
    except IntegrityError:
        kept = KeptAnswer.objects.filter(token=token, key=key).first()
    if kept is None:  # what was first there has been refused meanwhile
        raise UnderWay
    if kept.created_at < timezone.now() - KEPT:
        kept.delete()
        return begin(token, key, request_sha256)
    if kept.request_sha256 != request_sha256:
        raise OtherRequest
    if kept.status is None:
        raise UnderWay
    return Answer(kept.status, kept.content_type, kept.location, kept.body)


def keep(place: KeptAnswer, answer: Answer) -> None:
    KeptAnswer.objects.filter(pk=place.pk).update(
        status=answer.status, content_type=answer.content_type, location=answer.location, body=answer.body
    )


def forget(place: KeptAnswer) -> None:
    """Nothing was done: the same may be asked again under this key."""
    KeptAnswer.objects.filter(pk=place.pk).delete()


def drop_old() -> None:
    """Answers of more than a day ago, a few hundred at a time; the next sweep goes on."""
    old = KeptAnswer.objects.filter(created_at__lt=timezone.now() - KEPT).order_by("created_at")
    KeptAnswer.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:DROPPED_AT_ONCE])).delete()
