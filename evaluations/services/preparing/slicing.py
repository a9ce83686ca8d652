"""Slices: filters that people gave a name, for reports, exports and runs."""

from django.db import transaction

from evaluations.domain import Filter, InputRefused
from evaluations.models import Evaluation, Slice, User
from evaluations.models.filtering import comparisons_in
from evaluations.services.recording import record

LONGEST = 80
NAMED_AT_MOST = 8


def slice_of(evaluation: Evaluation, name: str) -> Slice:
    """The slice of this name; where there is none, one sentence says which there are."""
    found = Slice.objects.filter(evaluation=evaluation, name=name).first()
    if found is None:
        known = list(Slice.objects.filter(evaluation=evaluation).order_by("name").values_list("name", flat=True))
        there = ", ".join(f"“{one}”" for one in known[:NAMED_AT_MOST])
        more = " and others" if len(known) > NAMED_AT_MOST else ""
        hint = f"there are {there}{more}" if known else "none is saved yet; save one on the page of comparisons"
        raise InputRefused(f"There is no slice “{name}” here: {hint}.")
    return found


@transaction.atomic
def save_slice(evaluation: Evaluation, name: str, wanted: Filter, *, user: User | None) -> Slice:
    refuse_name(evaluation, name := name.strip())
    if not wanted:
        raise InputRefused("Filter the comparisons first: a slice of all of them says nothing.")
    comparisons_in(evaluation, wanted)  # what it names must be there
    made = Slice.objects.create(evaluation=evaluation, name=name, filter=wanted.as_json(), user=user)
    record("saved", made, user=user, evaluation=evaluation, after={"name": name, "filter": made.filter})
    return made


@transaction.atomic
def rename_slice(one: Slice, name: str, *, user: User | None) -> None:
    refuse_name(one.evaluation, name := name.strip(), than=one)
    before, one.name = one.name, name
    one.save(update_fields=["name"])
    record("renamed", one, user=user, evaluation=one.evaluation, before={"name": before}, after={"name": name})


@transaction.atomic
def delete_slice(one: Slice, *, user: User | None) -> None:
    """What it was stands in the record; reports and exports that were made keep what they said."""
    record("deleted", one, user=user, evaluation=one.evaluation, before={"name": one.name, "filter": one.filter})
    one.delete()


def refuse_name(evaluation: Evaluation, name: str, than: Slice | None = None) -> None:
    if not 1 <= len(name) <= LONGEST or not name.isprintable():
        raise InputRefused(f"A slice needs a name of at most {LONGEST} characters.")
    others = Slice.objects.filter(evaluation=evaluation, name=name)
    if (others.exclude(pk=than.pk) if than else others).exists():
        raise InputRefused(f"There is a slice “{name}” already: choose another name.")
