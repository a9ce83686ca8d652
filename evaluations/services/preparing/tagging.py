"""Tags on comparisons: on some at once, with a way back, or on all that a filter means, by the worker."""

import time
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from django.db import transaction
from django.db.models import Count, Max, QuerySet
from django.utils import timezone

from evaluations.domain import Filter, InputRefused, filter_from
from evaluations.models import Comparison, Evaluation, Event, Tag, Tagging, TagWork, User
from evaluations.models.filtering import Among, conditions
from evaluations.services.pacing import paced, time_is_up
from evaluations.services.recording import record

LONGEST: Final = 60
AT_ONCE: Final = 250
# So many comparisons are looked through at a time: asked of all, each block would cost as much as the whole study.
PIECE: Final = 4_000
# What is done while somebody waits, and can be undone as one step.
MOST_AT_ONCE: Final = 5_000
MOST_TAGS: Final = 500
TAGGED, UNTAGGED = "tagged", "untagged"


def tag(
    evaluation: Evaluation, comparisons: Collection[int], name: str, *, user: User | None, undoes: Event | None = None
) -> Event:
    """Put the tag on these; the Event names those that did not have it, for the way back."""
    refuse_many(comparisons)
    one = tag_named(evaluation, name, user)
    known = set(Tagging.objects.filter(tag=one, comparison__in=comparisons).values_list("comparison", flat=True))
    here = Comparison.objects.filter(evaluation=evaluation, pk__in=comparisons)
    new = sorted(set(here.values_list("pk", flat=True)) - known)
    for some in in_parts(new):
        with paced(), transaction.atomic():
            put_on(one, some, user)
    return told(TAGGED, one, new, user, undoes)


def untag(
    evaluation: Evaluation, comparisons: Collection[int], name: str, *, user: User | None, undoes: Event | None = None
) -> Event:
    refuse_many(comparisons)
    one = known_tag(evaluation, name)
    those = Tagging.objects.filter(tag=one, comparison__in=comparisons)
    had = sorted(those.values_list("comparison_id", flat=True))
    for some in in_parts(had):
        with paced(), transaction.atomic():
            those.filter(comparison__in=some).delete()
    return told(UNTAGGED, one, had, user, undoes)


def undo(evaluation: Evaluation, event: int, *, user: User | None) -> Event:
    """Take back one step of tagging by anybody: exactly the comparisons that it changed."""
    before = Event.objects.filter(evaluation=evaluation, pk=event, object_type="tag", verb__in=(TAGGED, UNTAGGED))
    step = before.first()
    if step is None or "comparisons" not in step.after:
        raise InputRefused("There is no such step to undo.")
    if Event.objects.filter(evaluation=evaluation, object_type="tag", after__undoes=step.pk).exists():
        raise InputRefused("This step was undone already.")
    change = untag if step.verb == TAGGED else tag
    return change(evaluation, step.after["comparisons"], step.after["name"], user=user, undoes=step)


def told(verb: str, one: Tag, changed: Sequence[int], user: User | None, undoes: Event | None) -> Event:
    after = {"name": one.name, "number": len(changed), "comparisons": list(changed)}
    if undoes:
        after["undoes"] = undoes.pk
    return record(verb, one, user=user, evaluation=one.evaluation, after=after)


def put_on(one: Tag, comparisons: Sequence[int], user: User | None) -> None:
    rows = [Tagging(tag=one, comparison_id=pk, user=user) for pk in comparisons]
    Tagging.objects.bulk_create(rows, ignore_conflicts=True)


def tag_named(evaluation: Evaluation, name: str, user: User | None) -> Tag:
    """The tag of this name, made where there is none."""
    refuse_name(name := name.strip())
    known = Tag.objects.filter(evaluation=evaluation, name=name).first()
    if known:
        return known
    if Tag.objects.filter(evaluation=evaluation).count() >= MOST_TAGS:
        raise InputRefused(f"There are {MOST_TAGS} tags here already: use one of them, or delete one.")
    with transaction.atomic():
        made, is_new = Tag.objects.get_or_create(evaluation=evaluation, name=name)
        if is_new:
            record("made", made, user=user, evaluation=evaluation, after={"name": name})
    return made


def known_tag(evaluation: Evaluation, name: str) -> Tag:
    found = Tag.objects.filter(evaluation=evaluation, name=name.strip()).first()
    if found is None:
        raise InputRefused(f"There is no tag “{name.strip()}” here.")
    return found


def refuse_name(name: str) -> None:
    if not 1 <= len(name) <= LONGEST or not name.isprintable():
        raise InputRefused(f"A tag is a word or a few, of at most {LONGEST} characters.")


def refuse_many(comparisons: Collection[int]) -> None:
    if not comparisons:
        raise InputRefused("Choose at least one comparison in the list.")
    if len(comparisons) > MOST_AT_ONCE:
        raise InputRefused(f"At most {MOST_AT_ONCE:,} comparisons are tagged in one step: filter for them instead.")


@transaction.atomic
def rename_tag(one: Tag, name: str, *, user: User | None) -> None:
    refuse_name(name := name.strip())
    if Tag.objects.filter(evaluation=one.evaluation, name=name).exclude(pk=one.pk).exists():
        raise InputRefused(f"There is a tag “{name}” already: choose another name.")
    before, one.name = one.name, name
    one.save(update_fields=["name"])
    record("renamed", one, user=user, evaluation=one.evaluation, before={"name": before}, after={"name": name})


@transaction.atomic
def delete_tag(one: Tag, *, user: User | None) -> None:
    """Only one that nothing has any more: whoever deletes it takes it from its comparisons first, on record."""
    if one.taggings.exists():
        raise InputRefused(f"Comparisons have the tag “{one.name}”: take it from them first.")
    record("deleted", one, user=user, evaluation=one.evaluation, before={"name": one.name})
    one.works.all().delete()
    one.delete()


def counted(evaluation: Evaluation) -> "QuerySet[Tag]":
    """All tags by name, with how many comparisons each has."""
    return Tag.objects.filter(evaluation=evaluation).annotate(number=Count("taggings")).order_by("name")


# ---- all that a filter means ----------------------------------------------------------------


def tag_all(
    evaluation: Evaluation, wanted: Sequence[Filter], name: str, *, takes_away: bool, user: User | None
) -> TagWork:
    """Put it to the worker: all that the filters mean by now, none that comes in later."""
    one = known_tag(evaluation, name) if takes_away else tag_named(evaluation, name, user)
    last = Comparison.all_rows.filter(evaluation=evaluation).aggregate(last=Max("pk"))["last"] or 0
    filters = [each.as_json() for each in wanted]
    with transaction.atomic():
        work = TagWork.objects.create(tag=one, user=user, filters=filters, takes_away=takes_away, up_to=last)
        verb = "began untagging" if takes_away else "began tagging"
        record(verb, one, user=user, evaluation=evaluation, after={"name": one.name, "filters": filters})
    return work


def works_left() -> list[int]:
    return list(TagWork.objects.filter(finished_at=None).order_by("pk").values_list("pk", flat=True))


def go_on(work_id: int, *, seconds: float | None = None) -> bool:
    """Tag for so long; whether more is left."""
    until = None if seconds is None else time.monotonic() + seconds
    work = TagWork.objects.select_related("tag__evaluation", "user").filter(pk=work_id, finished_at=None).first()
    if work is None:
        return False
    while tag_some(work):
        if time_is_up(until):
            return True
    return False


def tag_some(work: TagWork) -> bool:
    """One block. Two workers at one block do it once: it is theirs who sets how far it came."""
    if work.reached >= work.up_to:
        return end(work, "")
    last = end_of_piece(work)
    try:
        ids = list(meant(work, last)[:AT_ONCE])
    except InputRefused as refused:  # what it was filtered by is gone
        return end(work, str(refused))
    reached = ids[-1] if len(ids) == AT_ONCE else last
    with paced(), transaction.atomic():
        there = Tagging.objects.filter(tag=work.tag, comparison__in=ids)
        known = set(there.values_list("comparison_id", flat=True))
        changed = len(known) if work.takes_away else len(ids) - len(known)
        mine = TagWork.objects.filter(pk=work.pk, reached=work.reached, finished_at=None)
        if not mine.update(reached=reached, changed=work.changed + changed):
            return False
        if work.takes_away:
            there.delete()
        else:
            put_on(work.tag, [pk for pk in ids if pk not in known], work.user)
    work.reached, work.changed = reached, work.changed + changed
    return True


def end_of_piece(work: TagWork) -> int:
    """The last of the comparisons that are looked through next."""
    left = Comparison.all_rows.filter(evaluation=work.tag.evaluation, pk__gt=work.reached, pk__lte=work.up_to)
    last: int | None = left.order_by("pk").values_list("pk", flat=True)[PIECE - 1 : PIECE].first()
    return work.up_to if last is None else last


def meant(work: TagWork, last: int) -> "QuerySet[Comparison, int]":
    """What all filters of the work mean in its next piece, in order."""
    evaluation, among = work.tag.evaluation, Among(work.reached, last)
    rows = Comparison.objects.filter(among.where("pk"), evaluation=evaluation)
    for one in work.filters:
        for condition in conditions(evaluation, filter_from(one)):
            rows = rows.filter(condition(among))
    return rows.order_by("pk").values_list("pk", flat=True)


def end(work: TagWork, reason: str) -> bool:
    with transaction.atomic():
        left = TagWork.objects.filter(pk=work.pk, finished_at=None)
        if left.update(finished_at=timezone.now(), reason=reason):
            after = {"name": work.tag.name, "number": work.changed, "filters": work.filters}
            verb = UNTAGGED if work.takes_away else TAGGED
            record(verb, work.tag, user=work.user, evaluation=work.tag.evaluation, after=after)
    return False


def in_parts(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[start : start + AT_ONCE] for start in range(0, len(ids), AT_ONCE))
