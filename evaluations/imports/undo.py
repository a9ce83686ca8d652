"""The undoing of stored imports whose rows were not used."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from django.db import models, transaction
from django.db.models import Exists, OuterRef, ProtectedError, Q, QuerySet
from django.db.models.functions import Now

from evaluations.audit.events import record_event
from evaluations.comparisons.search.services import remove_from_search_index
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ImportState
from evaluations.domain.groups import split_into_slices
from evaluations.domain.jobs import COUNT_LABELS, INDEX_IMPORT
from evaluations.domain.reviews import AssignmentState, QueueKind
from evaluations.domain.roles import RaterKind
from evaluations.domain.rubrics import RubricKind
from evaluations.imports.lifecycle import (
    OWNED_MODELS,
    UNDO_JOB,
    delete_rows_of_import,
    delete_unused_names,
    enqueue_follow_ups,
    find_raters_of_import,
    refuse_concurrent_import,
    renew_import_claim,
)
from evaluations.imports.replaced_responses import (
    exports_since_import,
    find_replaced_responses,
    lock_judges_and_queues,
    taken_slots,
)
from evaluations.imports.sql import delete_queue_items
from evaluations.jobs.kinds import JobClaim
from evaluations.jobs.queue import delete_jobs, enqueue_job
from evaluations.models.comparisons import Comparison, Response, Tagging
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from evaluations.models.imports import Import
from evaluations.models.queues import Assignment, DefaultQueue, QueueSlot
from evaluations.models.rubrics import RubricVersion
from evaluations.models.runs import Call
from evaluations.models.transactions import TransactionPacer, is_time_up, rows_per_transaction
from evaluations.models.users import User
from evaluations.models.verdicts import Adjudication, Comment, Disclosure, Label, Review, Score, Verdict
from evaluations.verdicts.changes import mark_raters_changed
from evaluations.verdicts.label_updates import (
    find_score_imports,
    get_comparisons_per_batch,
    recount_labels_later,
)
from evaluations.verdicts.votes import update_labels

MAX_NAMED_IMPORTS: Final = 5  # imports, in a sentence


def start_undo(importing: Import, *, user: User | None) -> None:
    """Hide all rows of an import; its job then removes them. Raises InputRefused if they were used."""
    if importing.evaluation.archived_at is not None:
        raise InputRefused("This evaluation is archived. Restore it to undo an import.")
    refuse_undo_in_state(importing)
    refuse_concurrent_import(importing.evaluation)
    with transaction.atomic():
        lock_judges_and_queues(importing.evaluation)
        row = Import.objects.select_for_update(of=("self",)).select_related("evaluation").get(pk=importing.pk)
        refuse_undo_in_state(row)
        refuse_used_import(row)
        hide_import(row, user)
    importing.refresh_from_db()


def explain_why_not_undoable(importing: Import) -> str:
    """The reason why a stored import cannot be undone now, or an empty text."""
    try:
        refuse_used_import(importing)
    except InputRefused as refused:
        return str(refused)
    return ""


def refuse_undo_in_state(importing: Import) -> None:
    name = importing.file_name
    if importing.state == ImportState.UNDONE:
        raise InputRefused(f"{name} was already undone.")
    if importing.state == ImportState.UNDOING:
        raise InputRefused(f"{name} is already being undone.")
    if importing.state in (ImportState.CANCELLED, ImportState.FAILED):
        raise InputRefused(f"Nothing of {name} was imported, so there is nothing to undo.")
    if importing.state != ImportState.DONE:
        raise InputRefused(f"{name} is not imported yet. Cancel it instead.")


def refuse_used_import(importing: Import, undone_before: Collection[int] = ()) -> None:
    """``undone_before``: ids of imports that are removed before it."""
    if later := [other for other in find_dependent_imports(importing) if other.pk not in undone_before]:
        imports, it, those = ("import", "builds", "that one") if len(later) == 1 else ("imports", "build", "those")
        raise InputRefused(
            f"{importing.file_name} can't be undone: {imports} {name_imports(later)} {it} on it. Undo {those} first."
        )
    counts = [count for count in count_uses_of_import(importing) if count[0]]
    uses = [f"{number:,} {singular if number == 1 else plural}" for number, singular, plural in counts]
    if uses:
        raise InputRefused(f"{importing.file_name} can't be undone: it was used in {join_import_names(uses)}.")


def name_imports(imports: Sequence[Import]) -> str:
    named = [f"{row.pk} ({row.file_name})" for row in imports[:MAX_NAMED_IMPORTS]]
    return join_import_names([*named, *([f"{len(imports) - len(named)} more"] if len(imports) > len(named) else [])])


def join_import_names(names: Sequence[str]) -> str:
    return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])


def find_dependent_imports(importing: Import) -> list[Import]:
    """The imports that added something to the import's queries, responses or comparisons."""
    its_comparison, its_response = (Q(**{f"{path}__source_import": importing}) for path in ("comparison", "response"))
    rows: tuple[QuerySet[models.Model], ...] = (
        Response.all_rows.filter(query__source_import=importing),
        Comparison.all_rows.filter(uses_texts_of_import(importing)),
        Verdict.all_rows.filter(its_comparison),
        Score.all_rows.filter(its_response),
        Call.all_rows.filter(its_comparison | its_response),
    )
    ids: set[int] = set()
    for rows_of_table in rows:
        others = rows_of_table.exclude(source_import=importing).filter(source_import__isnull=False).order_by()
        ids.update(others.values_list("source_import", flat=True).distinct())
    return list(Import.objects.filter(pk__in=ids).order_by("pk"))


def uses_texts_of_import(importing: Import) -> Q:
    return (
        Q(query__source_import=importing)
        | Q(response_a__source_import=importing)
        | Q(response_b__source_import=importing)
    )


def count_uses_of_import(importing: Import) -> Iterator[tuple[int, str, str]]:
    """How often rows of the import were used, with the singular and plural of each kind of use."""
    on_it, said_on = Q(comparison__source_import=importing), verdicts_of_import(importing)
    later = Q(created_at__gte=importing.stored_at)
    reviews = Review.all_rows.exclude(source_import=importing)
    shown = Exists(said_on.filter(rater__judge=OuterRef("judge")))
    yield reviews.filter(on_it | shown).count(), "review or draft", "reviews and drafts"
    calls = Call.all_rows.filter(on_it | Q(response__source_import=importing), source_import__isnull=True)
    yield calls.count(), "judge call", "judge calls"
    # A reservation alone is no work: what was begun on it is a draft.
    kept = Assignment.objects.exclude(state=AssignmentState.RESERVED).filter(taken_slots())
    yield kept.filter(item__comparison__source_import=importing).count(), "assigned comparison", "assigned comparisons"
    slots = QueueSlot.objects.filter(item__comparison__source_import=importing)
    gold = verdicts_of_import(importing, "item__comparison").filter(rater__kind=RaterKind.GOLD)
    posed = QueueSlot.objects.filter(later, Exists(gold), queue__kind=QueueKind.CALIBRATION)
    yield slots.count() + posed.exclude(pk__in=slots.values("pk")).count(), "queue item", "queue items"
    settled = Q(Exists(said_on)) & later
    yield Adjudication.objects.filter(on_it | settled).count(), "resolution", "resolutions"
    yield Comment.objects.filter(on_it | settled).count(), "comment", "comments"
    by_hand = Comparison.all_rows.filter(uses_texts_of_import(importing), source_import__isnull=True)
    yield by_hand.count(), "comparison added by hand", "comparisons added by hand"
    exports = Export.objects.filter(exports_since_import(importing))
    yield exports.count(), "export", "exports"
    yield (
        len(find_replaced_responses(importing)),
        "replaced response",
        "replaced responses",
    )


def verdicts_of_import(importing: Import, path: str = "comparison") -> QuerySet[Verdict]:
    """The import's verdicts on the comparison of an outer row."""
    return Verdict.all_rows.filter(source_import=importing, comparison=OuterRef(path)).order_by()


def describe_later_duplicates(importing: Import) -> str:
    """A sentence on later files that may have skipped rows because of this import."""
    left_out = Q(rows_unchanged__gt=0) | Q(rows_skipped__gt=0)
    later = Import.objects.filter(left_out, evaluation=importing.evaluation_id, state=ImportState.DONE)
    imports = list(later.filter(finished_at__gt=importing.stored_at).order_by("pk"))
    if not imports:
        return ""
    noun = "import" if len(imports) == 1 else "imports"
    return (
        f"Rows of {noun} {name_imports(imports)} were skipped as duplicates. "
        "If they duplicated this file, import them again."
    )


def hide_import(importing: Import, user: User | None) -> None:
    delete_queue_items(importing)
    reset_queue_fill(importing.evaluation)
    for kind in (INDEX_IMPORT, COUNT_LABELS):
        delete_jobs(kind, [importing.pk])
    Import.objects.filter(pk=importing.pk).update(state=ImportState.UNDOING, queued_by=None, reason="")
    mark_material_changed(importing)
    enqueue_job(UNDO_JOB, importing.pk, evaluation=importing.evaluation)
    record_event("undid", importing, user=user, evaluation=importing.evaluation, before=importing.new_rows)


def reset_queue_fill(evaluation: Evaluation) -> None:
    """Have each queue filled and counted again before its next item is taken."""
    DefaultQueue.objects.filter(rubric_version__rubric__evaluation=evaluation).update(last_comparison=0)


def mark_material_changed(importing: Import) -> None:
    """Have reports on its raters and comparisons computed again."""
    mark_raters_changed(find_raters_of_import(importing))
    Evaluation.objects.filter(pk=importing.evaluation_id).update(comparisons_changed_at=Now())


def work_on_undo(claim: JobClaim) -> bool:
    """Remove hidden rows. Returns whether none is left."""
    importing = Import.objects.select_related("evaluation", "user").get(pk=claim.job.subject)
    importing.lease = claim
    if importing.state != ImportState.UNDOING:
        return True
    return restore_if_used(importing) or remove_imported_rows(importing, claim.until)


def restore_if_used(importing: Import) -> bool:
    """Restore the import if a review or call used it while it was being hidden."""
    if importing.is_removing:
        return False
    with transaction.atomic():
        lock_judges_and_queues(importing.evaluation)
        try:
            refuse_used_import(importing)
        except InputRefused as refused:
            renew_import_claim(importing, ImportState.UNDOING, state=ImportState.DONE, reason=str(refused))
            enqueue_follow_ups(importing)
            reset_queue_fill(importing.evaluation)
            mark_material_changed(importing)
            after = {"reason": str(refused)}
            record_event("stored again", importing, user=None, evaluation=importing.evaluation, after=after)
            return True
        importing.is_removing = True
        renew_import_claim(importing, ImportState.UNDOING, is_removing=True)
    return False


def remove_imported_rows(importing: Import, until: float | None) -> bool:
    """Remove all rows of the import until time is up. Returns whether none is left."""
    pace = TransactionPacer()
    if not (recount_labels_of_others(importing, pace, until) and remove_dependent_rows(importing, pace, until)):
        return False
    for model in OWNED_MODELS:
        renew_import_claim(importing, ImportState.UNDOING)
        if not delete_rows_of_import(model, importing, pace, until):
            return False
    pace.rest()
    gone = (ImportState.UNDOING, ImportState.UNDONE)  # rows of earlier imports may be unused only now
    undone = list(Import.objects.filter(evaluation=importing.evaluation_id, state__in=gone).order_by("-finished_at"))
    for step in (delete_imported_versions, delete_unused_names):
        for row in undone:
            step(row)
    importing.file.delete(save=False)
    with transaction.atomic():
        renew_import_claim(importing, ImportState.UNDOING, state=ImportState.UNDONE, file="")
        record_event("removed", importing, user=None, evaluation=importing.evaluation, after=importing.new_rows)
    importing.refresh_from_db()
    return True


def recount_labels_of_others(importing: Import, pace: TransactionPacer, until: float | None) -> bool:
    """Recount the labels of remaining comparisons on which raters of this import voted."""
    ids = find_comparisons_voted_on(importing, importing.labels_cursor)
    for batch in split_into_slices(ids, get_comparisons_per_batch(importing)):
        with pace.turn(), transaction.atomic():
            update_labels(batch)
            renew_import_claim(importing, ImportState.UNDOING, labels_cursor=batch[-1])
        if is_time_up(until) and batch[-1] != ids[-1]:
            return False
    return True


def find_comparisons_voted_on(importing: Import, after: int) -> list[int]:
    by_people = {"source_import": importing, "rater__kind": RaterKind.HUMAN}
    verdicts = Verdict.all_rows.filter(**by_people).order_by().values("comparison")
    scored = Score.all_rows.filter(**by_people).order_by().values("response")
    others = Comparison.all_rows.exclude(source_import=importing).filter(pk__gt=after)
    conditions = (Q(pk__in=verdicts), Q(response_a__in=scored), Q(response_b__in=scored))
    return sorted({pk for condition in conditions for pk in others.filter(condition).values_list("pk", flat=True)})


def remove_dependent_rows(importing: Import, pace: TransactionPacer, until: float | None) -> bool:
    """Remove labels, tags and search words of the import's own comparisons."""
    own = Comparison.all_rows.filter(source_import=importing).order_by("pk").values_list("pk", flat=True)
    while batch := list(own.filter(pk__gt=importing.rows_cursor)[: rows_per_transaction()]):
        importing.rows_cursor = batch[-1]
        with pace.turn(), transaction.atomic():
            renew_import_claim(importing, ImportState.UNDOING, rows_cursor=importing.rows_cursor)
            for hanging in (Label, Tagging, Disclosure):
                hanging.objects.filter(comparison__in=batch).delete()
            remove_from_search_index(batch)
        if is_time_up(until):
            return False
    return True


def delete_imported_versions(importing: Import) -> None:
    """Delete the rubric versions that the import added, if they are the newest and unused."""
    for pk in reversed(importing.created.rubric_versions):
        version = RubricVersion.objects.select_related("rubric").filter(pk=pk).first()
        if version is None or version.rubric.versions.filter(number__gt=version.number).exists():
            continue
        aspects = list(version.rubric_aspects.values_list("aspect", flat=True))
        try:
            with transaction.atomic():
                version.rubric_aspects.all().delete()
                version.delete()
                if version.rubric.kind == RubricKind.POINTWISE:  # the previous margin applies again
                    recount_labels_later(find_score_imports(Score.objects.filter(aspect__in=aspects)))
                if not version.rubric.versions.exists():
                    version.rubric.delete()
        except ProtectedError:
            continue
