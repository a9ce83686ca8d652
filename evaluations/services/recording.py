"""The record of who did what: every service that changes something writes here."""

from collections.abc import Mapping
from typing import Any

from django.db import models

from evaluations.models import Evaluation, Event, User


def record(
    verb: str,
    about: models.Model,
    *,
    user: User | None,
    evaluation: Evaluation | None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> Event:
    """Write one Event, in the transaction of the change that it tells of."""
    return Event.objects.create(
        verb=verb,
        object_type=about._meta.model_name or "",
        object_id=about.pk,
        user=user,
        evaluation=evaluation,
        before=dict(before or {}),
        after=dict(after or {}),
    )
