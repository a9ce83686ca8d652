"""Which look at the test part a report is: each new result there is one, and the same result is the same look."""

import hashlib

from django.db import transaction
from django.db.models import Max

from evaluations.models import Evaluation, Look
from evaluations.stats.looks import Look as LookNumber


@transaction.atomic
def look_at(evaluation: Evaluation, results: str) -> LookNumber:
    """The look with these results; it is recorded where nobody has seen them before."""
    sha256 = hashlib.sha256(results.encode()).hexdigest()
    Evaluation.objects.select_for_update().get(pk=evaluation.pk)
    looks = Look.objects.filter(evaluation=evaluation)
    seen = looks.filter(results_sha256=sha256).first()
    if seen is None:
        last = looks.aggregate(last=Max("number"))["last"] or 0
        seen = Look.objects.create(evaluation=evaluation, results_sha256=sha256, number=last + 1)
    return LookNumber(seen.number)
