"""Responses that take the place of others: only of those that nothing was made of, and all at once."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from django.db.models import F, Q
from django.db.models.functions import Now

from evaluations.domain import BACKUP, FOLDER, PLACES_TAKEN, AssignmentState, ExportState, InputRefused
from evaluations.models import (
    Adjudication,
    Assignment,
    Bookmark,
    Call,
    Comment,
    Comparison,
    Evaluation,
    Export,
    Import,
    Judge,
    Pick,
    Queue,
    QueueItem,
    Response,
    Review,
    Score,
    Tagging,
    Verdict,
)
from evaluations.services.importing.indexing import make_unfindable
from evaluations.services.importing.pairing import replaced_by

AT_ONCE: Final = 500


def lock_out_others(evaluation: Evaluation) -> None:
    """Until the transaction ends no run is planned on what is here, and nobody takes a place in a queue."""
    list(Judge.objects.select_for_update().filter(evaluation=evaluation).order_by("pk").values_list("pk"))
    queues = Queue.objects.select_for_update().filter(rubric_version__rubric__evaluation=evaluation).order_by("pk")
    for version in list(queues.values_list("rubric_version", flat=True)):
        Bookmark.objects.filter(rubric_version=version).update(reached=F("reached"))


def taken_places() -> Q:
    """Of assignments: what somebody has before them, or was given, or has done."""
    return Q(state__in=PLACES_TAKEN) & ~Q(state=AssignmentState.HELD, held_until__lt=Now())


def exports_since(importing: Import) -> Q:
    """Exports that may hold what an import brought. A backup is none: it takes nothing to where it is used.

    Where no row was written nothing left; a folder counts its preferences alone, and has all comparisons in it.
    """
    empty = Q(rows=0) & ~Q(format=FOLDER)
    written = Q(state=ExportState.DONE, finished_at__gte=importing.stored_at) & ~empty
    begun = Q(state__in=(ExportState.WAITING, ExportState.UNFINISHED))
    return (written | begun) & Q(evaluation=importing.evaluation_id) & ~Q(format=BACKUP)


def used_among(responses: Collection[int]) -> set[int]:
    """Those of these responses that were judged, reviewed, scored, commented, resolved, reserved or exported."""
    found: set[int] = set()
    for some in in_parts(sorted(responses)):
        sides = Comparison.all_rows.filter(Q(response_a__in=some) | Q(response_b__in=some)).order_by()
        pairs = {pk: both for pk, *both in sides.values_list("pk", "response_a", "response_b")}
        for comparison in used_comparisons(list(pairs)):
            found.update(pairs[comparison])
        for model in (Call, Score):
            found.update(model.all_rows.filter(response__in=some).values_list("response", flat=True))
        found.update(exported(some))
    return found & set(responses)


def used_comparisons(comparisons: Sequence[int]) -> set[int]:
    used: set[int] = set()
    for some in in_parts(comparisons):
        for model in (Review, Call, Verdict):
            used.update(model.all_rows.filter(comparison__in=some).values_list("comparison", flat=True))
        for one in (Adjudication, Comment):
            used.update(one.objects.filter(comparison__in=some).values_list("comparison", flat=True))
        in_queue = {"item__comparison__in": some}
        used.update(Assignment.objects.filter(taken_places(), **in_queue).values_list("item__comparison", flat=True))
        used.update(Pick.objects.filter(**in_queue).values_list("item__comparison", flat=True))
    return used


def exported(responses: Sequence[int]) -> list[int]:
    """Those that were here, to be seen, when something was exported."""
    of_imports = Response.all_rows.filter(pk__in=responses, source_import__isnull=False)
    ids = of_imports.order_by().values_list("source_import", flat=True).distinct()
    seen = [one for one in Import.objects.filter(pk__in=ids) if Export.objects.filter(exports_since(one)).exists()]
    return list(of_imports.filter(source_import__in=seen).values_list("pk", flat=True))


def remove_replaced(importing: Import) -> None:
    """In the transaction that shows the new ones. Raises InputRefused where an old one was used meanwhile."""
    old = replaced_by(importing)
    if not old:
        return
    lock_out_others(importing.evaluation)
    if used := used_among(old):
        raise InputRefused(
            f"{len(used):,} of the responses to be replaced were used since the file was checked. Nothing was stored."
        )
    for some in in_parts(old):
        pairs = Comparison.all_rows.filter(Q(response_a__in=some) | Q(response_b__in=some))
        for comparisons in in_parts(list(pairs.values_list("pk", flat=True))):
            make_unfindable(comparisons)
            Tagging.objects.filter(comparison__in=comparisons).delete()
            Assignment.objects.filter(item__comparison__in=comparisons).delete()
            QueueItem.objects.filter(comparison__in=comparisons).delete()
            Comparison.all_rows.filter(pk__in=comparisons).delete()
        Response.all_rows.filter(pk__in=some).delete()
    Queue.objects.filter(rubric_version__rubric__evaluation=importing.evaluation_id).update(last_comparison=0)


def in_parts(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[start : start + AT_ONCE] for start in range(0, len(ids), AT_ONCE))
