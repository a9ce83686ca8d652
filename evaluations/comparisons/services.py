"""Comparisons are added by hand, tagged, or filtered under a saved name."""

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import Max, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.comparisons.pairing.selectors import build_comparison
from evaluations.comparisons.search.services import add_to_search_index
from evaluations.domain.errors import InputRefused
from evaluations.domain.filters import ComparisonFilter, parse_filter
from evaluations.domain.texts import ComparisonOrigin, Message, content_sha256
from evaluations.formats.values import MAX_CATEGORY, MAX_KEY, RowRefused, refuse_unstorable
from evaluations.jobs.nudges import WorkerTask, nudge
from evaluations.models.comparison_filter import ComparisonRange, filter_conditions, filter_evaluation
from evaluations.models.comparisons import Candidate, Comparison, Query, Response, Slice, Tag, Tagging, TagWork
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.text_flags import set_flags
from evaluations.models.transactions import is_time_up, pause_after_transaction
from evaluations.models.users import User
from evaluations.models.verdicts import Score
from evaluations.verdicts.recounts import find_imports_of_scores, schedule_recount

MAX_TAG_LENGTH: Final = 60

TAGGED_PER_TRANSACTION: Final = 250

# So many comparisons are looked through at a time: asked of all, each block would cost as much as the whole study.
TAG_BLOCK: Final = 4_000

# What is done while somebody waits, and can be undone as one step.
MAX_TAGGED_AT_ONCE: Final = 5_000

MAX_TAGS: Final = 500

TAGGED, UNTAGGED = "tagged", "untagged"


def tag_comparisons(
    evaluation: Evaluation, comparisons: Collection[int], name: str, *, user: User | None, undoes: Event | None = None
) -> Event:
    """Put a tag on comparisons. The returned event names those that did not have it, for undo."""
    refuse_too_many_comparisons(comparisons)
    one = get_or_create_tag(evaluation, name, user)
    known = set(Tagging.objects.filter(tag=one, comparison__in=comparisons).values_list("comparison", flat=True))
    here = Comparison.objects.filter(evaluation=evaluation, pk__in=comparisons)
    new = sorted(set(here.values_list("pk", flat=True)) - known)
    for some in split_for_tagging(new):
        with pause_after_transaction(), transaction.atomic():
            insert_taggings(one, some, user)
    return record_tagging(TAGGED, one, new, user, undoes)


def untag_comparisons(
    evaluation: Evaluation, comparisons: Collection[int], name: str, *, user: User | None, undoes: Event | None = None
) -> Event:
    refuse_too_many_comparisons(comparisons)
    one = get_tag(evaluation, name)
    those = Tagging.objects.filter(tag=one, comparison__in=comparisons)
    had = sorted(those.values_list("comparison_id", flat=True))
    for some in split_for_tagging(had):
        with pause_after_transaction(), transaction.atomic():
            those.filter(comparison__in=some).delete()
    return record_tagging(UNTAGGED, one, had, user, undoes)


def undo_tagging(evaluation: Evaluation, event: int, *, user: User | None) -> Event:
    """Undo one step of tagging, for exactly the comparisons that it changed."""
    before = Event.objects.filter(evaluation=evaluation, pk=event, object_type="tag", verb__in=(TAGGED, UNTAGGED))
    step = before.first()
    if step is None or "comparisons" not in step.after:
        raise InputRefused("There is no such step to undo.")
    if Event.objects.filter(evaluation=evaluation, object_type="tag", after__undoes=step.pk).exists():
        raise InputRefused("This step was undone already.")
    change = untag_comparisons if step.verb == TAGGED else tag_comparisons
    return change(evaluation, step.after["comparisons"], step.after["name"], user=user, undoes=step)


def record_tagging(verb: str, one: Tag, changed: Sequence[int], user: User | None, undoes: Event | None) -> Event:
    after = {"name": one.name, "number": len(changed), "comparisons": list(changed)}
    if undoes:
        after["undoes"] = undoes.pk
    return record_event(verb, one, user=user, evaluation=one.evaluation, after=after)


def insert_taggings(one: Tag, comparisons: Sequence[int], user: User | None) -> None:
    rows = [Tagging(tag=one, comparison_id=pk, user=user) for pk in comparisons]
    Tagging.objects.bulk_create(rows, ignore_conflicts=True)


def get_or_create_tag(evaluation: Evaluation, name: str, user: User | None) -> Tag:
    """The tag with this name, created if there is none."""
    refuse_tag_name(name := name.strip())
    known = Tag.objects.filter(evaluation=evaluation, name=name).first()
    if known:
        return known
    if Tag.objects.filter(evaluation=evaluation).count() >= MAX_TAGS:
        raise InputRefused(f"There are {MAX_TAGS} tags here already: use one of them, or delete one.")
    with transaction.atomic():
        made, is_new = Tag.objects.get_or_create(evaluation=evaluation, name=name)
        if is_new:
            record_event("made", made, user=user, evaluation=evaluation, after={"name": name})
    return made


def get_tag(evaluation: Evaluation, name: str) -> Tag:
    found = Tag.objects.filter(evaluation=evaluation, name=name.strip()).first()
    if found is None:
        raise InputRefused(f"There is no tag “{name.strip()}” here.")
    return found


def refuse_tag_name(name: str) -> None:
    if not 1 <= len(name) <= MAX_TAG_LENGTH or not name.isprintable():
        raise InputRefused(f"A tag is a word or a few, of at most {MAX_TAG_LENGTH} characters.")


def refuse_too_many_comparisons(comparisons: Collection[int]) -> None:
    if not comparisons:
        raise InputRefused("Choose at least one comparison in the list.")
    if len(comparisons) > MAX_TAGGED_AT_ONCE:
        raise InputRefused(
            f"At most {MAX_TAGGED_AT_ONCE:,} comparisons are tagged in one step: filter for them instead."
        )


@transaction.atomic
def change_tag_name(one: Tag, name: str, *, user: User | None) -> None:
    refuse_tag_name(name := name.strip())
    if Tag.objects.filter(evaluation=one.evaluation, name=name).exclude(pk=one.pk).exists():
        raise InputRefused(f"There is a tag “{name}” already: choose another name.")
    before, one.name = one.name, name
    one.save(update_fields=["name"])
    record_event("renamed", one, user=user, evaluation=one.evaluation, before={"name": before}, after={"name": name})


@transaction.atomic
def delete_unused_tag(one: Tag, *, user: User | None) -> None:
    """Delete a tag that no comparison has."""
    if one.taggings.exists():
        raise InputRefused(f"Comparisons have the tag “{one.name}”: take it from them first.")
    record_event("deleted", one, user=user, evaluation=one.evaluation, before={"name": one.name})
    one.works.all().delete()
    one.delete()


# ---- all that a filter means ----------------------------------------------------------------


def start_tag_job(
    evaluation: Evaluation, wanted: Sequence[ComparisonFilter], name: str, *, takes_away: bool, user: User | None
) -> TagWork:
    """Start a job that tags all comparisons matching the filters now, or removes the tag from them."""
    one = get_tag(evaluation, name) if takes_away else get_or_create_tag(evaluation, name, user)
    last = Comparison.all_rows.filter(evaluation=evaluation).aggregate(last=Max("pk"))["last"] or 0
    filters = [each.as_json() for each in wanted]
    with transaction.atomic():
        work = TagWork.objects.create(tag=one, user=user, filters=filters, takes_away=takes_away, up_to=last)
        verb = "began untagging" if takes_away else "began tagging"
        record_event(verb, one, user=user, evaluation=evaluation, after={"name": one.name, "filters": filters})
        nudge(WorkerTask.TAG_ALL, work.pk)
    return work


def list_open_tag_jobs() -> list[int]:
    return list(TagWork.objects.filter(finished_at=None).order_by("pk").values_list("pk", flat=True))


def continue_tag_job(work_id: int, *, seconds: float | None = None) -> bool:
    """Tag for at most this many seconds. Returns whether comparisons are left."""
    until = None if seconds is None else time.monotonic() + seconds
    work = TagWork.objects.select_related("tag__evaluation", "user").filter(pk=work_id, finished_at=None).first()
    if work is None:
        return False
    while tag_next_block(work):
        if is_time_up(until):
            return True
    return False


def tag_next_block(work: TagWork) -> bool:
    """Tag one block. Of two workers on a block, the one that records its progress does it."""
    if work.reached >= work.up_to:
        return finish_tag_job(work, "")
    last = find_tag_block_end(work)
    try:
        ids = list(select_tag_block(work, last)[:TAGGED_PER_TRANSACTION])
    except InputRefused as refused:  # what it was filtered by is gone
        return finish_tag_job(work, str(refused))
    reached = ids[-1] if len(ids) == TAGGED_PER_TRANSACTION else last
    with pause_after_transaction(), transaction.atomic():
        there = Tagging.objects.filter(tag=work.tag, comparison__in=ids)
        known = set(there.values_list("comparison_id", flat=True))
        changed = len(known) if work.takes_away else len(ids) - len(known)
        mine = TagWork.objects.filter(pk=work.pk, reached=work.reached, finished_at=None)
        if not mine.update(reached=reached, changed=work.changed + changed):
            return False
        if work.takes_away:
            there.delete()
        else:
            insert_taggings(work.tag, [pk for pk in ids if pk not in known], work.user)
    work.reached, work.changed = reached, work.changed + changed
    return True


def find_tag_block_end(work: TagWork) -> int:
    """The id of the last comparison of the next block."""
    left = Comparison.all_rows.filter(evaluation=work.tag.evaluation, pk__gt=work.reached, pk__lte=work.up_to)
    last: int | None = left.order_by("pk").values_list("pk", flat=True)[TAG_BLOCK - 1 : TAG_BLOCK].first()
    return work.up_to if last is None else last


def select_tag_block(work: TagWork, last: int) -> "QuerySet[Comparison, int]":
    """The comparisons of the next block that match all filters, in order."""
    evaluation, among = work.tag.evaluation, ComparisonRange(work.reached, last)
    rows = Comparison.objects.filter(among.where("pk"), evaluation=evaluation)
    for one in work.filters:
        for condition in filter_conditions(evaluation, parse_filter(one)):
            rows = rows.filter(condition(among))
    return rows.order_by("pk").values_list("pk", flat=True)


def finish_tag_job(work: TagWork, reason: str) -> bool:
    with transaction.atomic():
        left = TagWork.objects.filter(pk=work.pk, finished_at=None)
        if left.update(finished_at=timezone.now(), reason=reason):
            after = {"name": work.tag.name, "number": work.changed, "filters": work.filters}
            verb = UNTAGGED if work.takes_away else TAGGED
            record_event(verb, work.tag, user=work.user, evaluation=work.tag.evaluation, after=after)
    return False


def split_for_tagging(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[start : start + TAGGED_PER_TRANSACTION] for start in range(0, len(ids), TAGGED_PER_TRANSACTION))


@dataclass(frozen=True)
class ManualComparison:
    """The texts of a comparison as entered; the order of the names decides which response is A."""

    query: str
    first_candidate: str
    first_response: str
    second_candidate: str
    second_response: str
    category: str = ""
    context: str = ""
    reference: str = ""


def add_comparison(evaluation: Evaluation, written: ManualComparison, *, user: User | None) -> Comparison:
    refuse_unusable_texts(written)
    try:
        return store_manual_comparison(evaluation, written, user)
    except IntegrityError as error:  # the same rows are on their way in through another door
        raise InputRefused("An import is bringing in the same texts: try again when it is done.") from error


def refuse_unusable_texts(written: ManualComparison) -> None:
    if not written.query.strip():
        raise InputRefused("Write the query first.")
    names = (written.first_candidate, written.second_candidate)
    if not all(name.strip() for name in names):
        raise InputRefused("Name both candidates.")
    if names[0] == names[1]:
        raise InputRefused(f"Both responses are by “{names[0]}”: a comparison holds two candidates against each other.")
    if max(map(len, names)) > MAX_KEY:
        raise InputRefused(f"The name of a candidate has at most {MAX_KEY} characters.")
    if len(written.category) > MAX_CATEGORY:
        raise InputRefused(f"A category has at most {MAX_CATEGORY} characters.")
    try:
        for field, text in asdict(written).items():
            refuse_unstorable(text, f"The {field.replace('_', ' ')}")
    except RowRefused as error:
        raise InputRefused(f"{error}: no database keeps it. Take it out.") from error


@transaction.atomic
def store_manual_comparison(evaluation: Evaluation, written: ManualComparison, user: User | None) -> Comparison:
    query = get_or_create_query(evaluation, written)
    comparison = build_comparison(
        query,
        get_or_create_response(query, written.first_candidate, written.first_response),
        get_or_create_response(query, written.second_candidate, written.second_response),
        origin=ComparisonOrigin.BY_HAND,
    )
    same = Comparison.objects.filter(response_a=comparison.response_a, response_b=comparison.response_b).first()
    if same is not None:
        raise InputRefused(f"This comparison is here already, as number {same.pk}.")
    comparison.save()
    add_to_search_index([comparison])
    Evaluation.objects.filter(pk=evaluation.pk).update(comparisons_changed_at=Now())
    schedule_recount(
        find_imports_of_scores(Score.objects.filter(response__in=[comparison.response_a, comparison.response_b]))
    )
    after = {"query": query.key, "candidates": [written.first_candidate, written.second_candidate]}
    record_event("added", comparison, user=user, evaluation=evaluation, after=after)
    return comparison


def get_or_create_query(evaluation: Evaluation, written: ManualComparison) -> Query:
    """The query with these texts; an existing one is used, so that its cluster holds together."""
    messages = [Message(role="user", content=written.query)]
    context, reference = written.context or None, written.reference or None
    sha256 = content_sha256([messages, context, reference])
    known = Query.objects.filter(evaluation=evaluation, sha256=sha256).order_by("pk").first()
    if known is not None:
        if written.category not in ("", known.category):
            raise InputRefused(f"This query is here already, in the category “{known.category or '–'}”: use that one.")
        return known
    key = f"by-hand-{sha256[:16]}"
    query = Query(
        evaluation=evaluation,
        key=key,
        cluster=key,
        messages=messages,
        text=written.query,
        context=context,
        reference=reference,
        category=written.category,
        sha256=sha256,
    )
    set_flags([query])
    query.save()
    return query


def get_or_create_response(query: Query, name: str, text: str) -> Response:
    candidate, _ = Candidate.objects.get_or_create(evaluation=query.evaluation, name=name)
    messages = [Message(role="assistant", content=text)]
    sha256 = content_sha256(messages)
    same = Response.objects.filter(query=query, candidate=candidate, sha256=sha256).first()
    if same is not None:
        return same
    response = Response(query=query, candidate=candidate, sha256=sha256, messages=messages, characters=len(text))
    set_flags([response])
    response.save()
    return response


MAX_FILTER_NAME = 80


@transaction.atomic
def create_saved_filter(evaluation: Evaluation, name: str, wanted: ComparisonFilter, *, user: User | None) -> Slice:
    refuse_filter_name(evaluation, name := name.strip())
    if not wanted:
        raise InputRefused("Filter the comparisons first: a slice of all of them says nothing.")
    filter_evaluation(evaluation, wanted)  # what it names must be there
    made = Slice.objects.create(evaluation=evaluation, name=name, filter=wanted.as_json(), user=user)
    record_event("saved", made, user=user, evaluation=evaluation, after={"name": name, "filter": made.filter})
    return made


@transaction.atomic
def rename_saved_filter(one: Slice, name: str, *, user: User | None) -> None:
    refuse_filter_name(one.evaluation, name := name.strip(), than=one)
    before, one.name = one.name, name
    one.save(update_fields=["name"])
    record_event("renamed", one, user=user, evaluation=one.evaluation, before={"name": before}, after={"name": name})


@transaction.atomic
def delete_saved_filter(one: Slice, *, user: User | None) -> None:
    """Delete a saved filter. The activity keeps it; reports and exports made with it stay as they are."""
    record_event("deleted", one, user=user, evaluation=one.evaluation, before={"name": one.name, "filter": one.filter})
    one.delete()


def refuse_filter_name(evaluation: Evaluation, name: str, than: Slice | None = None) -> None:
    if not 1 <= len(name) <= MAX_FILTER_NAME or not name.isprintable():
        raise InputRefused(f"A slice needs a name of at most {MAX_FILTER_NAME} characters.")
    others = Slice.objects.filter(evaluation=evaluation, name=name)
    if (others.exclude(pk=than.pk) if than else others).exists():
        raise InputRefused(f"There is a slice “{name}” already: choose another name.")
