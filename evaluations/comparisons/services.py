"""Saved filters, and tags on comparisons."""

from collections.abc import Collection, Sequence
from typing import Final

from django.db import transaction
from django.db.models import Max, QuerySet
from django.db.models.functions import Now

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.filters import ComparisonFilter, parse_filter
from evaluations.domain.grouping import split_into_slices
from evaluations.domain.jobs import JobState
from evaluations.jobs.claims import end_claim
from evaluations.jobs.kinds import JobClaim, JobKind, register_job_kind
from evaluations.jobs.queue import delete_jobs, enqueue_job
from evaluations.models.comparison_filter import ComparisonRange, filter_conditions, filter_evaluation
from evaluations.models.comparisons import Comparison, SavedFilter, Tag, TagChange, Tagging
from evaluations.models.evaluations import Evaluation
from evaluations.models.jobs import Job
from evaluations.models.transactions import is_time_up, pause_after_transaction
from evaluations.models.users import User

MAX_FILTER_NAME = 80


@transaction.atomic
def create_saved_filter(
    evaluation: Evaluation, name: str, wanted: ComparisonFilter, *, user: User | None
) -> SavedFilter:
    refuse_filter_name(evaluation, name := name.strip())
    if not wanted:
        raise InputRefused("Filter the comparisons first: a filter that matches all of them need not be saved.")
    filter_evaluation(evaluation, wanted)  # what it names must be there
    made = SavedFilter.objects.create(evaluation=evaluation, name=name, filter=wanted.as_json(), user=user)
    record_event("saved", made, user=user, evaluation=evaluation, after={"name": name, "filter": made.filter})
    return made


@transaction.atomic
def rename_saved_filter(one: SavedFilter, name: str, *, user: User | None) -> None:
    refuse_filter_name(one.evaluation, name := name.strip(), than=one)
    before, one.name = one.name, name
    one.save(update_fields=["name"])
    record_event("renamed", one, user=user, evaluation=one.evaluation, before={"name": before}, after={"name": name})


@transaction.atomic
def delete_saved_filter(one: SavedFilter, *, user: User | None) -> None:
    """Delete a saved filter. The activity keeps it; reports and exports made with it stay as they are."""
    record_event("deleted", one, user=user, evaluation=one.evaluation, before={"name": one.name, "filter": one.filter})
    one.delete()


def refuse_filter_name(evaluation: Evaluation, name: str, than: SavedFilter | None = None) -> None:
    if not 1 <= len(name) <= MAX_FILTER_NAME or not name.isprintable():
        raise InputRefused(f"A saved filter needs a name of at most {MAX_FILTER_NAME} characters.")
    others = SavedFilter.objects.filter(evaluation=evaluation, name=name)
    if (others.exclude(pk=than.pk) if than else others).exists():
        raise InputRefused(f"There is a saved filter “{name}” already: choose another name.")


MAX_TAG_LENGTH: Final = 60

TAGGED_PER_TRANSACTION: Final = 250

# So many comparisons are looked through at a time: asked of all, each block would cost as much as the whole study.
TAG_BLOCK: Final = 4_000

# What is done while somebody waits, and can be undone as one step.
MAX_TAGGED_AT_ONCE: Final = 5_000

MAX_TAGS: Final = 500

TAG_JOB: Final = "tag"

TAGGED, UNTAGGED = "tagged", "untagged"


def tag_comparisons(evaluation: Evaluation, comparisons: Collection[int], name: str, *, user: User | None) -> TagChange:
    refuse_too_many_comparisons(comparisons)
    tag = get_or_create_tag(evaluation, name, user)
    known = set(Tagging.objects.filter(tag=tag, comparison__in=comparisons).values_list("comparison", flat=True))
    here = Comparison.objects.filter(evaluation=evaluation, pk__in=comparisons)
    new = sorted(set(here.values_list("pk", flat=True)) - known)
    for some in split_into_slices(new, TAGGED_PER_TRANSACTION):
        with pause_after_transaction(), transaction.atomic():
            insert_taggings(tag, some, user)
    return record_tagging(TAGGED, tag, new, user)


def untag_comparisons(
    evaluation: Evaluation, comparisons: Collection[int], name: str, *, user: User | None
) -> TagChange:
    refuse_too_many_comparisons(comparisons)
    tag = get_tag(evaluation, name)
    taggings = Tagging.objects.filter(tag=tag, comparison__in=comparisons)
    had = sorted(taggings.values_list("comparison_id", flat=True))
    for some in split_into_slices(had, TAGGED_PER_TRANSACTION):
        with pause_after_transaction(), transaction.atomic():
            taggings.filter(comparison__in=some).delete()
    return record_tagging(UNTAGGED, tag, had, user)


def undo_tagging(evaluation: Evaluation, pk: int, *, user: User | None) -> TagChange:
    """Undo one change, for exactly the comparisons that it changed."""
    change = TagChange.objects.select_related("tag").filter(evaluation=evaluation, pk=pk).first()
    if change is None or not change.comparisons:
        raise InputRefused("There is no such step to undo.")
    if change.undone_at is not None:
        raise InputRefused("This step was undone already.")
    undo = tag_comparisons if change.removes else untag_comparisons
    reverse_change = undo(evaluation, change.comparisons, change.name, user=user)
    TagChange.objects.filter(pk=pk).update(undone_at=Now())  # last: an undo that was interrupted can be repeated
    return reverse_change


@transaction.atomic
def record_tagging(verb: str, tag: Tag, changed: Sequence[int], user: User | None) -> TagChange:
    after = {"name": tag.name, "number": len(changed), "comparisons": list(changed)}
    record_event(verb, tag, user=user, evaluation=tag.evaluation, after=after)
    return TagChange.objects.create(
        evaluation=tag.evaluation,
        tag=tag,
        user=user,
        removes=verb == UNTAGGED,
        changed=len(changed),
        comparisons=list(changed),
    )


def insert_taggings(one: Tag, comparisons: Sequence[int], user: User | None) -> None:
    rows = [Tagging(tag=one, comparison_id=pk, user=user) for pk in comparisons]
    Tagging.objects.bulk_create(rows, ignore_conflicts=True)


def get_or_create_tag(evaluation: Evaluation, name: str, user: User | None) -> Tag:
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
    delete_jobs(TAG_JOB, one.changes.values_list("pk", flat=True))
    one.changes.update(tag=None, tag_name=one.name)
    one.delete()


# ---- all that a filter means ----------------------------------------------------------------


def start_tag_job(
    evaluation: Evaluation, wanted: Sequence[ComparisonFilter], name: str, *, removes: bool, user: User | None
) -> TagChange:
    """Start a job that tags all comparisons matching the filters now, or removes the tag from them."""
    one = get_tag(evaluation, name) if removes else get_or_create_tag(evaluation, name, user)
    last = Comparison.all_rows.filter(evaluation=evaluation).aggregate(last=Max("pk"))["last"] or 0
    filters = [each.as_json() for each in wanted]
    with transaction.atomic():
        change = TagChange.objects.create(evaluation=evaluation, tag=one, user=user, filters=filters, removes=removes)
        verb = "began untagging" if removes else "began tagging"
        record_event(verb, one, user=user, evaluation=evaluation, after={"name": one.name, "filters": filters})
        enqueue_job(TAG_JOB, change.pk, evaluation=evaluation, total=last)
    return change


def tag_for_a_while(claim: JobClaim) -> bool:
    """Tag comparisons up to the job's total, the last one when it was asked for; whether all of them are done.

    The job's position is the last comparison that was looked at.
    """
    change = TagChange.objects.select_related("evaluation", "tag", "user").get(pk=claim.job.subject)
    tag = change.tag
    if tag is None:  # deleted meanwhile, and the job with it
        return True
    while claim.job.position < (claim.job.total or 0):
        if not tag_next_block(claim, change, tag):
            return True
        if is_time_up(claim.until):
            return False
    finish_tag_job(claim, change, tag)
    return True


def tag_next_block(claim: JobClaim, change: TagChange, tag: Tag) -> bool:
    """Tag one block. Of two workers on a block, the one that records its progress does it."""
    last = find_tag_block_end(claim.job, change)
    try:
        ids = list(select_tag_block(claim.job, change, last)[:TAGGED_PER_TRANSACTION])
    except InputRefused as refused:  # what it was filtered by is gone
        finish_tag_job(claim, change, tag, str(refused))
        return False
    reached = ids[-1] if len(ids) == TAGGED_PER_TRANSACTION else last
    with pause_after_transaction(), transaction.atomic():
        claim.heartbeat(reached)
        there = Tagging.objects.filter(tag=tag, comparison__in=ids)
        known = set(there.values_list("comparison_id", flat=True))
        number = len(known) if change.removes else len(ids) - len(known)
        TagChange.objects.filter(pk=change.pk).update(changed=change.changed + number)
        if change.removes:
            there.delete()
        else:
            insert_taggings(tag, [pk for pk in ids if pk not in known], change.user)
    change.changed += number
    return True


def find_tag_block_end(job: Job, change: TagChange) -> int:
    """The id of the last comparison of the next block."""
    up_to = job.total or 0
    left = Comparison.all_rows.filter(evaluation=change.evaluation, pk__gt=job.position, pk__lte=up_to)
    last: int | None = left.order_by("pk").values_list("pk", flat=True)[TAG_BLOCK - 1 : TAG_BLOCK].first()
    return up_to if last is None else last


def select_tag_block(job: Job, change: TagChange, last: int) -> "QuerySet[Comparison, int]":
    """The comparisons of the next block that match all filters, in order."""
    evaluation, among = change.evaluation, ComparisonRange(job.position, last)
    rows = Comparison.objects.filter(among.where("pk"), evaluation=evaluation)
    for one in change.filters:
        for condition in filter_conditions(evaluation, parse_filter(one)):
            rows = rows.filter(condition(among))
    return rows.order_by("pk").values_list("pk", flat=True)


@transaction.atomic
def finish_tag_job(claim: JobClaim, change: TagChange, tag: Tag, reason: str = "") -> None:
    claim.heartbeat()
    end_claim(claim, JobState.FAILED if reason else JobState.DONE, reason)
    after = {"name": tag.name, "number": change.changed, "filters": change.filters}
    verb = UNTAGGED if change.removes else TAGGED
    record_event(verb, tag, user=change.user, evaluation=change.evaluation, after=after)


register_job_kind(JobKind(TAG_JOB, tag_for_a_while))


def list_tag_jobs(evaluation: Evaluation, limit: int) -> list[tuple[TagChange, Job]]:
    """The latest changes that a job makes, each with its job."""
    jobs = Job.objects.filter(kind=TAG_JOB, evaluation=evaluation).order_by("-subject")[:limit]
    changes = TagChange.objects.select_related("tag").in_bulk([job.subject for job in jobs])
    return [(changes[job.subject], job) for job in jobs if job.subject in changes]


def list_undoable_tag_changes(evaluation: Evaluation, limit: int) -> list[TagChange]:
    changes = TagChange.objects.filter(evaluation=evaluation, undone_at__isnull=True).exclude(comparisons=[])
    return list(changes.select_related("tag").order_by("-pk")[:limit])
