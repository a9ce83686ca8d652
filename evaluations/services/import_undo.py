"""An import taken back: what it alone brought is hidden at once and then removed, where nothing was made of it yet."""

from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Final

from django.db import connection, models, transaction
from django.db.models import Exists, OuterRef, ProtectedError, Q, QuerySet
from django.db.models.functions import Now

from evaluations.domain import (
    ImportState,
    InputRefused,
    RaterKind,
    RoundKind,
    RubricKind,
)
from evaluations.models import (
    Adjudication,
    Assignment,
    Call,
    Comment,
    Comparison,
    Evaluation,
    Export,
    Import,
    Indexing,
    Label,
    Pick,
    Queue,
    Rater,
    Response,
    Review,
    RubricVersion,
    Score,
    Tagging,
    User,
    Verdict,
)
from evaluations.services.importing.importing import raters_in, refuse_beside_another
from evaluations.services.importing.indexing import make_unfindable
from evaluations.services.importing.pairing import replaced_by
from evaluations.services.importing.recounting import imports_of, recount_later
from evaluations.services.importing.replacements import exports_since, lock_out_others, taken_places
from evaluations.services.importing.sweeping import (
    OWNED,
    VERSIONS,
    claim,
    hand_over,
    remove_all,
    remove_names,
    rows_at_once,
    still_at_it,
)
from evaluations.services.pacing import Pace, time_is_up
from evaluations.services.recording import record
from evaluations.services.reviewing.tallying import chunks, comparisons_at_once, tally

COUNTED_TO: Final = "counted_anew_to"  # of an import's summary: the last comparison of others whose labels are right
CLEARED_TO: Final = "cleared_to"  # the last comparison of its own that nothing hangs on any longer
NAMED_AT_MOST: Final = 5  # imports, in a sentence


def begin_undo(importing: Import, *, user: User | None) -> None:
    """Hide all that an import brought; `go_on` then removes it. Raises InputRefused where something was made of it.

    The judges are locked, as by the planning of a run, and the queues, as by whoever takes a place in one.
    """
    if importing.evaluation.archived_at is not None:
        raise InputRefused("This evaluation is archived: bring it back before you undo an import.")
    refuse_state(importing)
    refuse_beside_another(importing.evaluation)
    with transaction.atomic():
        lock_out_others(importing.evaluation)
        row = Import.objects.select_for_update(of=("self",)).select_related("evaluation").get(pk=importing.pk)
        refuse_state(row)
        refuse_used(row)
        hide(row, user)
    importing.refresh_from_db()


def why_it_stays(importing: Import) -> str:
    """Why a stored import cannot be undone as things stand; empty where it can."""
    try:
        refuse_used(importing)
    except InputRefused as refused:
        return str(refused)
    return ""


def refuse_state(importing: Import) -> None:
    name = importing.file_name
    if importing.state == ImportState.UNDONE:
        raise InputRefused(f"{name} was undone already.")
    if importing.state == ImportState.UNDOING:
        raise InputRefused(f"{name} is being undone already.")
    if importing.state in (ImportState.CANCELLED, ImportState.FAILED):
        raise InputRefused(f"Nothing of {name} is stored: there is nothing to undo.")
    if importing.state != ImportState.DONE:
        raise InputRefused(f"{name} is not stored yet: cancel it instead.")


# ---- what was made of it -------------------------------------------------------------------------


def refuse_used(importing: Import) -> None:
    if later := imports_built_on(importing):
        named = [f"{one.pk} ({one.file_name})" for one in later[:NAMED_AT_MOST]]
        more = [f"{len(later) - len(named)} more"] if len(later) > len(named) else []
        imports, it, those = ("import", "builds", "that one") if len(later) == 1 else ("imports", "build", "those")
        raise InputRefused(
            f"{importing.file_name} cannot be undone: {imports} {listed([*named, *more])} {it} on it. "
            f"Undo {those} first."
        )
    uses = [f"{number:,} {one if number == 1 else many}" for number, one, many in uses_of(importing) if number]
    if uses:
        raise InputRefused(f"{importing.file_name} cannot be undone: it was used in {listed(uses)}.")


def listed(names: Sequence[str]) -> str:
    return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])


def imports_built_on(importing: Import) -> list[Import]:
    """Those that brought something to its queries, responses or comparisons."""
    its_comparison, its_response = (Q(**{f"{path}__source_import": importing}) for path in ("comparison", "response"))
    rows: tuple[QuerySet[models.Model], ...] = (
        Response.all_rows.filter(query__source_import=importing),
        Comparison.all_rows.filter(on_its_texts(importing)),
        Verdict.all_rows.filter(its_comparison),
        Score.all_rows.filter(its_response),
        Call.all_rows.filter(its_comparison | its_response),
    )
    found: set[int] = set()
    for some in rows:
        others = some.exclude(source_import=importing).filter(source_import__isnull=False).order_by()
        found.update(others.values_list("source_import", flat=True).distinct())
    return list(Import.objects.filter(pk__in=found).order_by("pk"))


def on_its_texts(importing: Import) -> Q:
    return (
        Q(query__source_import=importing)
        | Q(response_a__source_import=importing)
        | Q(response_b__source_import=importing)
    )


def uses_of(importing: Import) -> Iterator[tuple[int, str, str]]:
    """How often each was made of what it brought, and what one and many of those are called."""
    on_it, said_on = Q(comparison__source_import=importing), said_by(importing)
    later = Q(created_at__gte=importing.stored_at)
    reviews = Review.all_rows.exclude(source_import=importing)
    shown = Exists(said_on.filter(rater__judge=OuterRef("judge")))
    yield reviews.filter(on_it | shown).count(), "review or draft", "reviews and drafts"
    calls = Call.all_rows.filter(on_it | Q(response__source_import=importing), source_import__isnull=True)
    yield calls.count(), "judge call", "judge calls"
    places = Assignment.objects.filter(taken_places(), item__comparison__source_import=importing)
    yield places.count(), "place that is reserved or assigned", "places that are reserved or assigned"
    picks = Pick.objects.filter(item__comparison__source_import=importing)
    gold = said_by(importing, "item__comparison").filter(rater__kind=RaterKind.GOLD)
    posed = Pick.objects.filter(later, Exists(gold), round__kind=RoundKind.CALIBRATION)
    yield picks.count() + posed.exclude(pk__in=picks.values("pk")).count(), "place in a queue", "places in queues"
    settled = Q(Exists(said_on)) & later
    yield Adjudication.objects.filter(on_it | settled).count(), "resolution", "resolutions"
    yield Comment.objects.filter(on_it | settled).count(), "comment", "comments"
    by_hand = Comparison.all_rows.filter(on_its_texts(importing), source_import__isnull=True)
    yield by_hand.count(), "comparison added by hand", "comparisons added by hand"
    exports = Export.objects.filter(exports_since(importing))
    yield exports.count(), "export", "exports"
    yield len(replaced_by(importing)), "response that took the place of another", "responses that took others' places"


def said_by(importing: Import, path: str = "comparison") -> QuerySet[Verdict]:
    """Its verdicts on the comparison of an outer row."""
    return Verdict.all_rows.filter(source_import=importing, comparison=OuterRef(path)).order_by()


def later_duplicates(importing: Import) -> str:
    """Files that came later may have held some of the same rows, or others that were skipped for these."""
    left_out = Q(rows_unchanged__gt=0) | Q(rows_skipped__gt=0)
    later = Import.objects.filter(left_out, evaluation=importing.evaluation_id, state=ImportState.DONE)
    found = list(later.filter(finished_at__gt=importing.stored_at).order_by("pk"))
    if not found:
        return ""
    named = [f"{one.pk} ({one.file_name})" for one in found[:NAMED_AT_MOST]]
    more = [f"{len(found) - len(named)} more"] if len(found) > len(named) else []
    return (
        f"Rows of {'import' if len(found) == 1 else 'imports'} {listed([*named, *more])} were here already, or "
        "skipped: if that was for this file's rows, import theirs again."
    )


# ---- at once: nobody sees any of it --------------------------------------------------------------

LAPSED_PLACES: Final = """
DELETE FROM evaluations_assignment WHERE item_id IN (
  SELECT q.id FROM evaluations_queueitem q JOIN evaluations_comparison c ON c.id = q.comparison_id
  WHERE c.source_import_id = %s)
"""
QUEUE_ITEMS: Final = """
DELETE FROM evaluations_queueitem
WHERE comparison_id IN (SELECT id FROM evaluations_comparison WHERE source_import_id = %s)
"""


def hide(importing: Import, user: User | None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(LAPSED_PLACES, [importing.pk])
        cursor.execute(QUEUE_ITEMS, [importing.pk])
    look_at_queues_anew(importing.evaluation)
    Indexing.objects.filter(source_import=importing).delete()
    Import.objects.filter(pk=importing.pk).update(state=ImportState.UNDOING, seen_at=None, reason="")
    note_change(importing)
    record("undid", importing, user=user, evaluation=importing.evaluation, before=importing.brought)


def look_at_queues_anew(evaluation: Evaluation) -> None:
    """Whoever next takes a place has its queue filled and counted first."""
    Queue.objects.filter(rubric_version__rubric__evaluation=evaluation).update(last_comparison=0)


def note_change(importing: Import) -> None:
    """Reports on its raters and comparisons are made anew."""
    Rater.objects.filter(pk__in=raters_in(importing)).update(verdicts_changed_at=Now())
    Evaluation.objects.filter(pk=importing.evaluation_id).update(comparisons_changed_at=Now())


# ---- in small steps ------------------------------------------------------------------------------


def go_on(importing: Import, *, seconds: float | None = None) -> bool:
    """Remove what is hidden, for at most so long. True where more is left to do by another call."""
    if not claim(importing, ImportState.UNDOING):
        return False
    until = None if seconds is None else monotonic() + seconds
    finished = False
    try:
        finished = shown_again(importing) or remove_brought(importing, until)
    finally:
        hand_over(importing)
    return not finished


def shown_again(importing: Import) -> bool:
    """A review or call that was on its way while everything was hidden keeps the import as it was."""
    if importing.summary.get("removing"):
        return False
    with transaction.atomic():
        lock_out_others(importing.evaluation)
        try:
            refuse_used(importing)
        except InputRefused as refused:
            still_at_it(importing, ImportState.UNDOING, state=ImportState.DONE, reason=str(refused))
            look_at_queues_anew(importing.evaluation)
            note_change(importing)
            told = {"reason": str(refused)}
            record("stored again", importing, user=None, evaluation=importing.evaluation, after=told)
            return True
        importing.summary = {**importing.summary, "removing": True}
        still_at_it(importing, ImportState.UNDOING, summary=importing.summary)
    return False


def remove_brought(importing: Import, until: float | None) -> bool:
    """Whether nothing of it is left."""
    pace = Pace()
    if not (count_others_anew(importing, pace, until) and remove_what_hangs_on(importing, pace, until)):
        return False
    for model in OWNED:
        still_at_it(importing, ImportState.UNDOING)
        if not remove_all(model, importing, pace, until):
            return False
    pace.rest()
    gone = (ImportState.UNDOING, ImportState.UNDONE)  # of those before, too: what was needed still may be free by now
    undone = list(Import.objects.filter(evaluation=importing.evaluation_id, state__in=gone).order_by("-finished_at"))
    for step in (remove_versions, remove_names):
        for one in undone:
            step(one)
    importing.file.delete(save=False)
    with transaction.atomic():
        still_at_it(importing, ImportState.UNDOING, state=ImportState.UNDONE, file="")
        record("removed", importing, user=None, evaluation=importing.evaluation, after=importing.brought)
    importing.refresh_from_db()
    return True


def count_others_anew(importing: Import, pace: Pace, until: float | None) -> bool:
    """The labels of comparisons that its people voted on and that stay. Its votes do not count: they are hidden."""
    ids = voted_on(importing, importing.summary.get(COUNTED_TO, 0))
    for some in chunks(ids, comparisons_at_once(importing)):
        with pace.turn(), transaction.atomic():
            tally(some)
            importing.summary = {**importing.summary, COUNTED_TO: some[-1]}
            still_at_it(importing, ImportState.UNDOING, summary=importing.summary)
        if time_is_up(until) and some[-1] != ids[-1]:
            return False
    return True


def voted_on(importing: Import, after: int) -> list[int]:
    by_people = {"source_import": importing, "rater__kind": RaterKind.HUMAN}
    verdicts = Verdict.all_rows.filter(**by_people).order_by().values("comparison")
    scored = Score.all_rows.filter(**by_people).order_by().values("response")
    others = Comparison.all_rows.exclude(source_import=importing).filter(pk__gt=after)
    meant = (Q(pk__in=verdicts), Q(response_a__in=scored), Q(response_b__in=scored))
    return sorted({pk for one in meant for pk in others.filter(one).values_list("pk", flat=True)})


def remove_what_hangs_on(importing: Import, pace: Pace, until: float | None) -> bool:
    """Labels, tags and the words of the search of its own comparisons."""
    own = Comparison.all_rows.filter(source_import=importing).order_by("pk").values_list("pk", flat=True)
    while some := list(own.filter(pk__gt=importing.summary.get(CLEARED_TO, 0))[: rows_at_once()]):
        importing.summary = {**importing.summary, CLEARED_TO: some[-1]}
        with pace.turn(), transaction.atomic():
            still_at_it(importing, ImportState.UNDOING, summary=importing.summary)
            for hanging in (Label, Tagging):
                hanging.objects.filter(comparison__in=some).delete()
            make_unfindable(some)
        if time_is_up(until):
            return False
    return True


def remove_versions(importing: Import) -> None:
    """The versions of rubrics that came with it, where they are the newest and nothing else knows them."""
    for pk in reversed(importing.summary.get("made", {}).get(VERSIONS, [])):
        version = RubricVersion.objects.select_related("rubric").filter(pk=pk).first()
        if version is None or version.rubric.versions.filter(number__gt=version.number).exists():
            continue
        aspects = list(version.asked.values_list("aspect", flat=True))
        try:
            with transaction.atomic():
                version.asked.all().delete()
                version.delete()
                if version.rubric.kind == RubricKind.POINTWISE:  # another margin holds again
                    recount_later(imports_of(Score.objects.filter(aspect__in=aspects)))
                if not version.rubric.versions.exists():
                    version.rubric.delete()
        except ProtectedError:
            continue
