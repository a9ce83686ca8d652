"""The strategies by which a round picks its comparisons.

Every strategy puts what fits it in an order; of equals the one goes first whose turn in the random
order comes first, so that the same data give the same round. Only what is drawn at random leaves a
known probability: ``stratified`` here, and the random share that every round may have.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection
from django.db.models import Q

from evaluations.domain import JudgeKind, LabelSource, PickedBy, RubricKind
from evaluations.models import Call, Evaluation, Label, Rater, Verdict
from evaluations.services.judging.consolidating import judges_choices

# Of what one statement found so many are looked at together, where it may have found too much.
AT_ONCE: Final = 500


@dataclass(frozen=True)
class Field:
    """What a round may pick from: items by comparison id in the random order, and the judges that are asked."""

    version_id: int
    items: Mapping[int, int]
    judges: Sequence[Rater]
    aspects: Sequence[int]


# Whether it can still give a round what it wants: it wants more reviews than are taken, and no open
# round has it.
FREE: Final = """
SELECT i.comparison_id, i.id FROM evaluations_queueitem i
WHERE i.rubric_version_id = %s AND i.taken < %s AND NOT EXISTS (
  SELECT 1 FROM evaluations_pick p JOIN evaluations_round r ON r.id = p.round_id
  WHERE p.item_id = i.id AND r.kind = 'review' AND r.closed_at IS NULL)
ORDER BY i.position
"""


def field_of(evaluation: Evaluation, reviews_wanted: int) -> Field:
    version = evaluation.review_rubric
    assert version is not None
    with connection.cursor() as cursor:
        cursor.execute(FREE, [version.pk, reviews_wanted])
        items = dict(cursor.fetchall())
    return Field(version.pk, items, judges_of(evaluation), list(version.asked.values_list("aspect", flat=True)))


def judges_of(evaluation: Evaluation) -> list[Rater]:
    """The shown judge and every LLM that compares two responses. Who scores single ones has no orders to differ in."""
    kinds = Q(judge__kind=JudgeKind.LLM) | Q(judge=evaluation.shown_judge_id, judge__isnull=False)
    raters = (
        Rater.objects.current().filter(kinds, evaluation=evaluation).select_related("judge__rubric_version__rubric")
    )
    pairwise = raters.exclude(judge__rubric_version__rubric__kind=RubricKind.POINTWISE)
    return list(pairwise.order_by("pk"))


def fitting(strategy: PickedBy, field: Field, number: int | None = None) -> list[int]:
    """The items that fit a deterministic strategy, best first; no more than so many."""
    found = STRATEGIES[strategy](field)
    items = (field.items[pk] for pk in found if pk in field.items)
    return list(items)[:number] if number is not None else list(items)


# ---- deterministic strategies --------------------------------------------------------------

NO_TEST: Final = "(call_id IS NULL OR call_id NOT IN (SELECT id FROM evaluations_call WHERE is_test))"
# What one judge says of one aspect: its orders where they agree, else a tie; two words for “no side” are one.
CONSOLIDATED: Final = (
    """
SELECT comparison_id, aspect_id, rater_id,
  CASE WHEN MIN(choice) = MAX(choice) THEN MIN(choice) ELSE 'tie' END AS choice,
  MIN(CASE choice WHEN 'both_bad' THEN 'tie' ELSE choice END) AS least,
  MAX(CASE choice WHEN 'both_bad' THEN 'tie' ELSE choice END) AS most
FROM evaluations_verdict WHERE rater_id IN ({raters}) AND aspect_id IN ({aspects}) AND """
    + NO_TEST
    + """
GROUP BY comparison_id, aspect_id, rater_id
"""
)
FLIPPED: Final = "SELECT comparison_id, COUNT(*) FROM (" + CONSOLIDATED + ") AS told WHERE least <> most GROUP BY 1"
DIFFERING: Final = (
    "SELECT DISTINCT comparison_id FROM ("
    "SELECT comparison_id, aspect_id FROM (" + CONSOLIDATED + ") AS told "
    "GROUP BY comparison_id, aspect_id HAVING MIN(choice) <> MAX(choice)) AS differing"
)
# A is 1, tie a half, B is 0: what lies near a half over both orders is what a judge could not tell.
UNSURE: Final = (
    """
SELECT comparison_id, AVG(distance) FROM (
  SELECT comparison_id, ABS(AVG(weighted) - 0.5) AS distance FROM evaluations_verdict
  WHERE rater_id IN ({raters}) AND aspect_id IN ({aspects}) AND weighted IS NOT NULL AND """
    + NO_TEST
    + """
  GROUP BY comparison_id, aspect_id, rater_id) AS told
GROUP BY comparison_id
"""
)


def asked(statement: str, field: Field) -> list[tuple[Any, ...]]:
    """The rows of a statement about what the judges say on the aspects that people are asked about."""
    if not field.judges or not field.aspects:
        return []
    raters, aspects = (", ".join(["%s"] * len(some)) for some in (field.judges, field.aspects))
    with connection.cursor() as cursor:
        values = [*(rater.pk for rater in field.judges), *field.aspects]
        cursor.execute(statement.format(raters=raters, aspects=aspects), values)
        return list(cursor.fetchall())


def in_order(comparisons: Collection[int], field: Field) -> list[int]:
    return [pk for pk in field.items if pk in comparisons]


def flips(field: Field) -> Iterator[int]:
    """The two orders of a judge disagree on an aspect."""
    found = {pk for pk, _ in asked(FLIPPED, field)} | said_inconsistent(field)
    return checked(in_order(found, field), field, lambda said: any(one.inconsistent for one in said))


def said_inconsistent(field: Field) -> set[int]:
    """Verdicts that came in from elsewhere with both orders folded into one."""
    imported = [rater for rater in field.judges if rater.judge and rater.judge.kind == JudgeKind.IMPORTED]
    if not imported:
        return set()
    verdicts = Verdict.objects.filter(rater__in=imported, aspect__in=field.aspects, inconsistent=True)
    return set(verdicts.values_list("comparison_id", flat=True))


def judges_disagree(field: Field) -> Iterator[int]:
    """What two judges say differs on an aspect, each taken over both orders."""
    found = {pk for (pk,) in asked(DIFFERING, field)}
    return checked(in_order(found, field), field, None)


def checked(found: Sequence[int], field: Field, fits: "Callable[[list[Any]], bool] | None") -> Iterator[int]:
    """As found, or looked at one by one where a count of rows says too much.

    Several samples of an order speak by their plurality, and an order without an answer makes the
    verdict missing: one statement knows neither.
    """
    if not is_intricate(field):
        yield from found
        return
    for start in range(0, len(found), AT_ONCE):
        some = found[start : start + AT_ONCE]
        told = judges_choices(field.judges, some)
        for pk in some:
            by_aspect = defaultdict(list)
            for rater in field.judges:
                for key, folded in told[rater.pk].get(pk, {}).items():
                    by_aspect[key].append(folded)
            if fits is None:
                if any(len({one.choice for one in said}) > 1 for said in by_aspect.values()):
                    yield pk
            elif any(fits(said) for said in by_aspect.values()):
                yield pk


def is_intricate(field: Field) -> bool:
    judges = [rater.judge for rater in field.judges]
    calls = Call.objects.filter(judge__in=[judge for judge in judges if judge])
    if calls.exclude(state="answered").exists():
        return True
    return calls.filter(sample__gt=0).exists() or any(judge and judge.kind == JudgeKind.IMPORTED for judge in judges)


def people_disagree(field: Field) -> list[int]:
    """People chose differently on an aspect, and nobody settled it."""
    labels = Label.objects.filter(aspect__in=field.aspects, unanimous=False).exclude(source=LabelSource.ADJUDICATED)
    return in_order(set(labels.values_list("comparison_id", flat=True)), field)


def least_confident(field: Field) -> list[int]:
    """By the judges' own probabilities of A and B, the nearest to a half first, averaged over the aspects.

    Where no judge gave probabilities: by the number of aspects on which its orders disagree, the most first.
    """
    unsure: list[tuple[int, float]] = [(pk, far) for pk, far in asked(UNSURE, field)]
    if not unsure:
        unsure = [(pk, -many) for pk, many in asked(FLIPPED, field)]
    place = {pk: number for number, pk in enumerate(field.items)}
    ranked = sorted((far, place[pk], pk) for pk, far in unsure if pk in place)
    return [pk for _, _, pk in ranked]


STRATEGIES: Final[Mapping[PickedBy, Callable[[Field], "Iterator[int] | list[int]"]]] = {
    PickedBy.FLIPS: flips,
    PickedBy.JUDGES_DISAGREE: judges_disagree,
    PickedBy.PEOPLE_DISAGREE: people_disagree,
    PickedBy.LEAST_CONFIDENT: least_confident,
}
