"""Saved filters, and tags on comparisons."""

from collections.abc import Collection, Sequence
from typing import Final

from django.db import transaction
from django.db.models import Max, QuerySet
from django.db.models.functions import Now

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.filters import ComparisonFilter, parse_filter
from evaluations.domain.groups import split_into_slices
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
    evaluation: Evaluation, name: str, comparison_filter: ComparisonFilter, *, user: User | None
) -> SavedFilter:
    refuse_filter_name(evaluation, name := name.strip())
    if not comparison_filter:
        raise InputRefused("Set a filter first, then save it.")
    filter_evaluation(evaluation, comparison_filter)  # refuses names that do not exist
    saved = SavedFilter.objects.create(evaluation=evaluation, name=name, filter=comparison_filter.as_json(), user=user)
    record_event("saved", saved, user=user, evaluation=evaluation, after={"name": name, "filter": saved.filter})
    return saved


@transaction.atomic
def rename_saved_filter(saved: SavedFilter, name: str, *, user: User | None) -> None:
    refuse_filter_name(saved.evaluation, name := name.strip(), renamed=saved)
    store_new_name(saved, name, user)


@transaction.atomic
def delete_saved_filter(saved: SavedFilter, *, user: User | None) -> None:
    """Delete a saved filter. The activity keeps it; reports and exports made with it stay as they are."""
    before = {"name": saved.name, "filter": saved.filter}
    record_event("deleted", saved, user=user, evaluation=saved.evaluation, before=before)
    saved.delete()


def refuse_filter_name(evaluation: Evaluation, name: str, renamed: SavedFilter | None = None) -> None:
    if not 1 <= len(name) <= MAX_FILTER_NAME or not name.isprintable():
        raise InputRefused(f"Name the filter, in up to {MAX_FILTER_NAME} characters.")
    others = SavedFilter.objects.filter(evaluation=evaluation, name=name)
    if (others.exclude(pk=renamed.pk) if renamed else others).exists():
        raise InputRefused(f"A saved filter “{name}” already exists. Choose another name.")


def store_new_name(row: SavedFilter | Tag, name: str, user: User | None) -> None:
    before, row.name = row.name, name
    row.save(update_fields=["name"])
    record_event("renamed", row, user=user, evaluation=row.evaluation, before={"name": before}, after={"name": name})


MAX_TAG_LENGTH: Final = 60

TAGGED_PER_TRANSACTION: Final = 250

# Comparisons searched at a time: if all were searched, each block would cost as much as the whole evaluation.
TAG_BLOCK: Final = 4_000

# Tagged while the user waits, as one step that can be undone.
MAX_TAGGED_AT_ONCE: Final = 5_000

MAX_TAGS: Final = 500

TAG_JOB: Final = "tag"

TAGGED, UNTAGGED = "tagged", "untagged"


def tag_comparisons(evaluation: Evaluation, comparisons: Collection[int], name: str, *, user: User | None) -> TagChange:
    refuse_too_many_comparisons(comparisons)
    tag = get_or_create_tag(evaluation, name, user)
    tagged = set(Tagging.objects.filter(tag=tag, comparison__in=comparisons).values_list("comparison", flat=True))
    existing = Comparison.objects.filter(evaluation=evaluation, pk__in=comparisons)
    untagged = sorted(set(existing.values_list("pk", flat=True)) - tagged)
    for batch in split_into_slices(untagged, TAGGED_PER_TRANSACTION):
        with pause_after_transaction(), transaction.atomic():
            insert_taggings(tag, batch, user)
    return record_tagging(TAGGED, tag, untagged, user)


def untag_comparisons(
    evaluation: Evaluation, comparisons: Collection[int], name: str, *, user: User | None
) -> TagChange:
    refuse_too_many_comparisons(comparisons)
    tag = get_tag(evaluation, name)
    taggings = Tagging.objects.filter(tag=tag, comparison__in=comparisons)
    tagged = sorted(taggings.values_list("comparison_id", flat=True))
    for batch in split_into_slices(tagged, TAGGED_PER_TRANSACTION):
        with pause_after_transaction(), transaction.atomic():
            taggings.filter(comparison__in=batch).delete()
    return record_tagging(UNTAGGED, tag, tagged, user)


def undo_tagging(evaluation: Evaluation, pk: int, *, user: User | None) -> TagChange:
    """Undo one change, for exactly the comparisons that it changed."""
    change = TagChange.objects.select_related("tag").filter(evaluation=evaluation, pk=pk).first()
    if change is None or not change.comparisons:
        raise InputRefused("This change does not exist.")
    if change.undone_at is not None:
        raise InputRefused("This change is already undone.")
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


def insert_taggings(tag: Tag, comparisons: Sequence[int], user: User | None) -> None:
    rows = [Tagging(tag=tag, comparison_id=pk, user=user) for pk in comparisons]
    Tagging.objects.bulk_create(rows, ignore_conflicts=True)


def get_or_create_tag(evaluation: Evaluation, name: str, user: User | None) -> Tag:
    refuse_tag_name(name := name.strip())
    existing = Tag.objects.filter(evaluation=evaluation, name=name).first()
    if existing:
        return existing
    if Tag.objects.filter(evaluation=evaluation).count() >= MAX_TAGS:
        raise InputRefused(f"This evaluation has {MAX_TAGS} tags, the maximum. Use one of them, or delete one first.")
    with transaction.atomic():
        tag, is_new = Tag.objects.get_or_create(evaluation=evaluation, name=name)
        if is_new:
            record_event("made", tag, user=user, evaluation=evaluation, after={"name": name})
    return tag


def get_tag(evaluation: Evaluation, name: str) -> Tag:
    tag = Tag.objects.filter(evaluation=evaluation, name=name.strip()).first()
    if tag is None:
        raise InputRefused(f"There is no tag “{name.strip()}”.")
    return tag


def refuse_tag_name(name: str) -> None:
    if not 1 <= len(name) <= MAX_TAG_LENGTH or not name.isprintable():
        raise InputRefused(f"Enter a tag of up to {MAX_TAG_LENGTH} characters.")


def refuse_too_many_comparisons(comparisons: Collection[int]) -> None:
    if not comparisons:
        raise InputRefused("Select at least one comparison.")
    if len(comparisons) > MAX_TAGGED_AT_ONCE:
        raise InputRefused(f"One request tags up to {MAX_TAGGED_AT_ONCE:,} comparisons. Use a filter to tag more.")


@transaction.atomic
def change_tag_name(tag: Tag, name: str, *, user: User | None) -> None:
    refuse_tag_name(name := name.strip())
    if Tag.objects.filter(evaluation=tag.evaluation, name=name).exclude(pk=tag.pk).exists():
        raise InputRefused(f"A tag “{name}” already exists. Choose another name.")
    store_new_name(tag, name, user)


@transaction.atomic
def delete_unused_tag(tag: Tag, *, user: User | None) -> None:
    if tag.taggings.exists():
        raise InputRefused(f"Comparisons still have the tag “{tag.name}”. Remove it from them first.")
    record_event("deleted", tag, user=user, evaluation=tag.evaluation, before={"name": tag.name})
    delete_jobs(TAG_JOB, tag.changes.values_list("pk", flat=True))
    tag.changes.update(tag=None, tag_name=tag.name)
    tag.delete()


# ---- every comparison that matches a filter --------------------------------------------------


def start_tag_job(
    evaluation: Evaluation, filters: Sequence[ComparisonFilter], name: str, *, removes: bool, user: User | None
) -> TagChange:
    """Start a job that tags all comparisons matching the filters now, or removes the tag from them."""
    tag = get_tag(evaluation, name) if removes else get_or_create_tag(evaluation, name, user)
    last = Comparison.all_rows.filter(evaluation=evaluation).aggregate(last=Max("pk"))["last"] or 0
    stored = [comparison_filter.as_json() for comparison_filter in filters]
    with transaction.atomic():
        change = TagChange.objects.create(evaluation=evaluation, tag=tag, user=user, filters=stored, removes=removes)
        verb = "began untagging" if removes else "began tagging"
        record_event(verb, tag, user=user, evaluation=evaluation, after={"name": tag.name, "filters": stored})
        enqueue_job(TAG_JOB, change.pk, evaluation=evaluation, total=last)
    return change


def tag_for_a_while(claim: JobClaim) -> bool:
    """Tag comparisons up to the job's total; whether all are done. The job's position is the last one checked."""
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
    except InputRefused as refused:  # something that the filter names was deleted
        finish_tag_job(claim, change, tag, str(refused))
        return False
    reached = ids[-1] if len(ids) == TAGGED_PER_TRANSACTION else last
    with pause_after_transaction(), transaction.atomic():
        claim.heartbeat(reached)
        taggings = Tagging.objects.filter(tag=tag, comparison__in=ids)
        tagged = set(taggings.values_list("comparison_id", flat=True))
        number = len(tagged) if change.removes else len(ids) - len(tagged)
        TagChange.objects.filter(pk=change.pk).update(changed=change.changed + number)
        if change.removes:
            taggings.delete()
        else:
            insert_taggings(tag, [pk for pk in ids if pk not in tagged], change.user)
    change.changed += number
    return True


def find_tag_block_end(job: Job, change: TagChange) -> int:
    """The id of the last comparison of the next block."""
    end = job.total or 0
    remaining = Comparison.all_rows.filter(evaluation=change.evaluation, pk__gt=job.position, pk__lte=end)
    last: int | None = remaining.order_by("pk").values_list("pk", flat=True)[TAG_BLOCK - 1 : TAG_BLOCK].first()
    return end if last is None else last


def select_tag_block(job: Job, change: TagChange, last: int) -> "QuerySet[Comparison, int]":
    """The comparisons of the next block that match all filters, in order."""
    evaluation, among = change.evaluation, ComparisonRange(job.position, last)
    rows = Comparison.objects.filter(among.where("pk"), evaluation=evaluation)
    for stored_filter in change.filters:
        for condition in filter_conditions(evaluation, parse_filter(stored_filter)):
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
