"""The merging of clusters of near-duplicate queries."""

from typing import Final

from django.db import transaction
from django.db.models.functions import Now

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.texts import cluster_number
from evaluations.models.comparisons import Query
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User

MAX_RECORDED_CLUSTERS: Final = 500


def merge_clusters(evaluation: Evaluation, number: int, *, user: User | None) -> str:
    """Put these near-duplicates and their clusters into one cluster. Returns its name."""
    with transaction.atomic():
        members = Query.objects.filter(evaluation=evaluation, near_duplicate_key=number).order_by("pk")
        clusters = list(dict.fromkeys(members.values_list("cluster", flat=True)))
        if len(clusters) < 2:
            raise InputRefused("These prompts are already in one cluster.")
        name = clusters[0]
        moved = Query.objects.filter(evaluation=evaluation, cluster__in=clusters[1:])
        changed = moved.update(cluster=name, cluster_number=cluster_number(name))
        # Reports and splits, which are computed by cluster, are out of date.
        Evaluation.objects.filter(pk=evaluation.pk).update(comparisons_changed_at=Now())
        before, after = {"clusters": clusters[:MAX_RECORDED_CLUSTERS]}, {"cluster": name, "queries": changed}
        record_event("put in one cluster", evaluation, user=user, evaluation=evaluation, before=before, after=after)
    return name
