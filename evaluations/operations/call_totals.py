"""Running totals of the requests to LLM servers, so that monitors need not count them."""

from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import Count, F, Max, Sum
from django.db.models.functions import Coalesce, Now

from evaluations.models.jobs import CallTotal, CallTotalCursor
from evaluations.models.runs import Attempt

ATTEMPTS_AT_ONCE: Final = 5000
# Later rows may be committed before earlier ones: by then all of them are.
SETTLED_AFTER: Final = timedelta(seconds=10)
SUMS: Final = ("tokens_in", "tokens_out", "cost", "latency_ms")


def add_new_attempts() -> None:
    """Add the requests since the last time to the totals; the first time, begin with the next one."""
    cursor = CallTotalCursor.objects.order_by("pk").first()
    if cursor is None:
        newest = Attempt.objects.aggregate(newest=Coalesce(Max("pk"), 0))["newest"]
        CallTotalCursor.objects.create(attempt=newest)
        return
    settled = Attempt.objects.filter(pk__gt=cursor.attempt, created_at__lt=Now() - SETTLED_AFTER)
    ids = list(settled.order_by("pk").values_list("pk", flat=True)[:ATTEMPTS_AT_ONCE])
    if ids:
        add_attempts(cursor.attempt, ids[-1])


@transaction.atomic
def add_attempts(after: int, last: int) -> None:
    if not CallTotalCursor.objects.filter(attempt=after).update(attempt=last):
        return  # another process was faster
    attempts = Attempt.objects.filter(pk__gt=after, pk__lte=last).order_by().values_list("outcome")
    summed = {f"{name}_sum": Coalesce(Sum(name), 0) for name in SUMS}
    for outcome, requests, *sums in attempts.annotate(Count("pk"), **summed):
        CallTotal.objects.get_or_create(outcome=outcome)
        added = {name: F(name) + amount for name, amount in zip(SUMS, sums, strict=True)}
        CallTotal.objects.filter(outcome=outcome).update(requests=F("requests") + requests, **added)
