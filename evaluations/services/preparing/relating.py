"""Who made candidates and judges: whether a judge prefers its own kin can be asked only where that is told."""

from collections.abc import Mapping
from itertools import chain

from django.db import transaction

from evaluations.domain import InputRefused
from evaluations.models import Candidate, Evaluation, Judge, User
from evaluations.services.recording import record

LONGEST = 80


def candidates_and_judges(evaluation: Evaluation) -> tuple[list[Candidate], list[Judge]]:
    """All of them, by name."""
    of_it = {"evaluation": evaluation}
    return list(Candidate.objects.filter(**of_it).order_by("name")), list(
        Judge.objects.filter(**of_it).order_by("name")
    )


@transaction.atomic
def set_families(
    evaluation: Evaluation, candidates: Mapping[int, str], judges: Mapping[int, str], *, user: User | None
) -> int:
    """Write the families of these, by id, and what they were into the record; returns how many changed."""
    for name in chain(candidates.values(), judges.values()):
        if len(name) > LONGEST:
            raise InputRefused(f"The name of a family has at most {LONGEST} characters.")
    before, after = {}, {}
    known, judging = candidates_and_judges(evaluation)
    rows: list[tuple[str, Candidate | Judge, str | None]]
    rows = [("candidate", row, candidates.get(row.pk)) for row in known]
    rows += [("judge", row, judges.get(row.pk)) for row in judging]
    for kind, row, family in rows:
        if family is not None and row.family != family:
            named = f"{kind} {row.name}"  # a judge and a candidate may have one name
            before[named], after[named] = row.family, family
            row.family = family
            row.save(update_fields=["family"])
    if after:
        record("changed families", evaluation, user=user, evaluation=evaluation, before=before, after=after)
    return len(after)
