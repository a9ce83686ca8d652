"""Responses that were used already cannot be replaced; unused ones are deleted when an import ends."""

from collections.abc import Collection, Sequence
from typing import Final

from django.db.models import F, Q
from django.db.models.functions import Now

from evaluations.comparisons.search.services import remove_from_search_index
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import BACKUP_FORMAT_NAME, FOLDER_FORMAT, ExportState
from evaluations.domain.groups import split_into_slices
from evaluations.domain.reviews import TAKING_STATES, AssignmentState
from evaluations.models.comparisons import Comparison, Response, Tagging
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from evaluations.models.imports import Import
from evaluations.models.judges import Judge
from evaluations.models.queues import Assignment, DefaultQueue, QueueItem, QueueProgress, QueueSlot
from evaluations.models.runs import Call
from evaluations.models.verdicts import Adjudication, Comment, Disclosure, Review, Score, Verdict

REPLACES: Final = "replaces"  # a key of a response's metadata: the id of the response that it replaces
IDS_PER_QUERY: Final = 500


def find_replaced_responses(importing: Import, **narrowed: object) -> list[int]:
    responses = Response.all_rows.filter(source_import=importing, metadata__has_key=REPLACES, **narrowed)
    return [metadata[REPLACES] for metadata in responses.values_list("metadata", flat=True)]


def lock_judges_and_queues(evaluation: Evaluation) -> None:
    """Lock judges and queues, so that no run is planned and no slot is taken until the transaction ends."""
    list(Judge.objects.select_for_update().filter(evaluation=evaluation).order_by("pk").values_list("pk"))
    queues = (
        DefaultQueue.objects.select_for_update().filter(rubric_version__rubric__evaluation=evaluation).order_by("pk")
    )
    for version in list(queues.values_list("rubric_version", flat=True)):
        QueueProgress.objects.filter(rubric_version=version).update(reached=F("reached"))


def taken_slots() -> Q:
    """The condition for assignments that are reserved, assigned or done."""
    return Q(state__in=TAKING_STATES) & ~Q(state=AssignmentState.RESERVED, reserved_until__lt=Now())


def exports_since_import(importing: Import) -> Q:
    """Exports that may hold rows of an import, without backups.

    An export without rows holds none, except a folder: it counts only preferences but has all comparisons.
    """
    empty = Q(rows=0) & ~Q(format=FOLDER_FORMAT)
    written = Q(state=ExportState.DONE, finished_at__gte=importing.stored_at) & ~empty
    begun = Q(state__in=(ExportState.WAITING, ExportState.UNFINISHED))
    return (written | begun) & Q(evaluation=importing.evaluation_id) & ~Q(format=BACKUP_FORMAT_NAME)


def find_used_responses(responses: Collection[int]) -> set[int]:
    """The responses that were judged, reviewed, scored, commented, resolved, reserved or exported."""
    used: set[int] = set()
    for batch in split_into_slices(sorted(responses), IDS_PER_QUERY):
        sides = Comparison.all_rows.filter(Q(response_a__in=batch) | Q(response_b__in=batch)).order_by()
        pairs = {pk: both for pk, *both in sides.values_list("pk", "response_a", "response_b")}
        for comparison in find_used_comparisons(list(pairs)):
            used.update(pairs[comparison])
        for model in (Call, Score):
            used.update(model.all_rows.filter(response__in=batch).values_list("response", flat=True))
        used.update(find_exported_responses(batch))
    return used & set(responses)


def find_used_comparisons(comparisons: Sequence[int]) -> set[int]:
    used: set[int] = set()
    for batch in split_into_slices(comparisons, IDS_PER_QUERY):
        for model in (Review, Call, Verdict):
            used.update(model.all_rows.filter(comparison__in=batch).values_list("comparison", flat=True))
        for table in (Adjudication, Comment):
            used.update(table.objects.filter(comparison__in=batch).values_list("comparison", flat=True))
        in_queue = {"item__comparison__in": batch}
        used.update(Assignment.objects.filter(taken_slots(), **in_queue).values_list("item__comparison", flat=True))
        used.update(QueueSlot.objects.filter(**in_queue).values_list("item__comparison", flat=True))
    return used


def find_exported_responses(responses: Sequence[int]) -> list[int]:
    of_imports = Response.all_rows.filter(pk__in=responses, source_import__isnull=False)
    ids = of_imports.order_by().values_list("source_import", flat=True).distinct()
    seen = [
        row for row in Import.objects.filter(pk__in=ids) if Export.objects.filter(exports_since_import(row)).exists()
    ]
    return list(of_imports.filter(source_import__in=seen).values_list("pk", flat=True))


def delete_replaced_responses(importing: Import) -> None:
    """Delete replaced responses in the transaction that shows the new ones. Raises InputRefused if one was used."""
    old = find_replaced_responses(importing)
    if not old:
        return
    lock_judges_and_queues(importing.evaluation)
    if used := find_used_responses(old):
        raise InputRefused(
            f"{len(used):,} of the responses to be replaced were used since the file was checked. Nothing was stored."
        )
    for batch in split_into_slices(old, IDS_PER_QUERY):
        pairs = Comparison.all_rows.filter(Q(response_a__in=batch) | Q(response_b__in=batch))
        for comparisons in split_into_slices(list(pairs.values_list("pk", flat=True)), IDS_PER_QUERY):
            remove_from_search_index(comparisons)
            Tagging.objects.filter(comparison__in=comparisons).delete()
            Disclosure.objects.filter(comparison__in=comparisons).delete()
            Assignment.objects.filter(item__comparison__in=comparisons).delete()
            QueueItem.objects.filter(comparison__in=comparisons).delete()
            Comparison.all_rows.filter(pk__in=comparisons).delete()
        Response.all_rows.filter(pk__in=batch).delete()
    DefaultQueue.objects.filter(rubric_version__rubric__evaluation=importing.evaluation_id).update(last_comparison=0)
