"""The rubric that comes with imported verdicts on aspects that no other rubric asks about."""

from collections.abc import Mapping
from typing import Final

from evaluations.domain import AspectSpec, Choice, RubricKind, RubricOrigin, RubricSpec
from evaluations.models import Aspect, Evaluation, Rubric, User
from evaluations.services.preparing.preparing import add_rubric, freeze, next_version

IMPORTED: Final = "imported"


def imported_rubric(evaluation: Evaluation) -> Rubric | None:
    rubrics = Rubric.objects.filter(evaluation=evaluation, origin=RubricOrigin.IMPORTED)
    return rubrics.filter(kind=RubricKind.PAIRWISE).first()


def imported_offers(evaluation: Evaluation) -> dict[str, set[str]]:
    """What the rubric that imports brought offers so far, by aspect."""
    rubric = imported_rubric(evaluation)
    version = rubric.versions.order_by("-number").first() if rubric else None
    asked = version.asked.select_related("aspect") if version else []
    return {one.aspect.key: set(one.choices) for one in asked}


def bring_rubric(evaluation: Evaluation, occurring: Mapping[str, set[str]], user: User | None) -> list[int]:
    """A rubric that offers A, B and whatever else occurs, for aspects that no other rubric asks about.

    Returns the id of the version that this took, if any.
    """
    before = imported_offers(evaluation)
    sides = {str(Choice.A), str(Choice.B)}
    offers = {key: before.get(key, sides) | occurring.get(key, set()) for key in [*before, *sorted(occurring)]}
    if offers == before:
        return []
    names = dict(Aspect.objects.filter(evaluation=evaluation, key__in=offers).values_list("key", "name"))
    spec = RubricSpec(
        kind=RubricKind.PAIRWISE,
        instructions="These verdicts came in files; how they were asked for is not known here.",
        aspects=tuple(
            AspectSpec(
                key,
                names[key],
                definition="As in the imported file.",
                offers_tie=Choice.TIE in offered,
                offers_both_bad=Choice.BOTH_BAD in offered,
            )
            for key, offered in offers.items()
        ),
        output_order=tuple(offers),
    )
    rubric = imported_rubric(evaluation)
    if rubric:
        version = next_version(rubric, spec, user=user)
    else:
        version = add_rubric(
            evaluation, name=free_name(evaluation, IMPORTED), spec=spec, origin=RubricOrigin.IMPORTED, user=user
        )
    freeze(version)
    return [version.pk]


def free_name(evaluation: Evaluation, wanted: str) -> str:
    taken = set(Rubric.objects.filter(evaluation=evaluation).values_list("name", flat=True))
    return next(name for name in (wanted, *(f"{wanted} {n}" for n in range(2, 1000))) if name not in taken)
