"""Which worker processes are there: they report themselves, and tell when they leave."""

from datetime import timedelta
from typing import Final

from django.db.models.functions import Now

from evaluations.models import Worker

FORGOTTEN_AFTER: Final = timedelta(days=1)


def report_worker(name: str, *, host: str, pid: int, version: str) -> None:
    """Say that this process lives, by the database's clock."""
    if not Worker.objects.filter(name=name).update(seen_at=Now()):
        Worker.objects.create(name=name, host=host, pid=pid, version=version, started_at=Now(), seen_at=Now())
        Worker.objects.filter(seen_at__lt=Now() - FORGOTTEN_AFTER).delete()


def dismiss_worker(name: str) -> None:
    Worker.objects.filter(name=name).delete()
