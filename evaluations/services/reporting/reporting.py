"""From verdicts to the report, and from a number of it back to the comparisons behind it.

What a report is made of is handed on from here, for the doors that show it.
"""

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from django.db.models import QuerySet

from evaluations.domain import (
    BASELINE_REMARK,
    Choice,
    InputRefused,
    RaterKind,
    ReviewState,
    Rules,
    derived_remark,
)
from evaluations.models import Aspect, Comparison, Evaluation, Rater, Review, RubricAspect, Run
from evaluations.services.reporting.gathering import Gathered, gather
from evaluations.services.reporting.narrowing import comparisons_where, raters_of
from evaluations.services.reporting.voting import (
    BLIND,
    BLIND_ARM,
    CALIBRATION,
    NOT_DRAWN,
    SAW_JUDGE,
    SHOWN_ARM,
    UNKNOWN,
    PeopleRows,
)
from evaluations.stats.agreement import Block as Block
from evaluations.stats.anchoring import Confirmed, Seeing
from evaluations.stats.coding import CHOICES, A, B
from evaluations.stats.consolidation import Unanswered, Verdicts, consolidate
from evaluations.stats.deriving import Derived
from evaluations.stats.judges import JudgeMaterial
from evaluations.stats.majority import majority
from evaluations.stats.numbers import Number as Number
from evaluations.stats.report import AspectMaterial, aspect_report, summaries
from evaluations.stats.report import AspectReport as AspectReport
from evaluations.stats.report import Report as Report
from evaluations.stats.rules import in_words
from evaluations.stats.votes import Votes

NOTHING: Final = np.empty(0, dtype=np.int64)
NO_PEOPLE: Final = PeopleRows(Votes(NOTHING, NOTHING, NOTHING, NOTHING), NOTHING, NOTHING, NOTHING, NOTHING)
NONE_CONFIRMED: Final = Confirmed(NOTHING, NOTHING, NOTHING)
NO_VERDICTS: Final = Verdicts(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING.astype(bool))
NO_CALLS: Final = Unanswered(NOTHING, NOTHING, NOTHING, NOTHING)


@dataclass(frozen=True)
class Asked:
    """What the rubric versions of an evaluation ask; ``used``: those that judges and reviews here worked with."""

    rows: Sequence[RubricAspect]
    used: frozenset[int]

    def about(self, aspect: int) -> list[RubricAspect]:
        """How the versions ask about this aspect: those in use, else all that do."""
        rows = [row for row in self.rows if row.aspect_id == aspect]
        return [row for row in rows if row.version_id in self.used] or rows


def make_report(
    evaluation: Evaluation,
    comparisons: QuerySet[Comparison],
    rules: Rules,
    *,
    with_judges: bool = True,
    only_judge: int | None = None,
) -> Report:
    """Every number on the comparisons that the reader may see; with all judges, none, or one by its rater id."""
    wanted = comparisons_where(comparisons, rules.where)
    raters = [rater for rater in raters_of(evaluation, rules) if is_wanted(rater, with_judges, only_judge)]
    gathered = gather(wanted, raters)
    asked = what_was_asked(evaluation, wanted, raters)
    judged = judged_aspects(gathered, raters, asked)
    panels = panels_of(evaluation, raters)
    aspects = aspects_in_order(evaluation, asked)
    heard = gathered.aspects().union(*judged.values())
    reports = {
        aspect.key: aspect_report(material(aspect, gathered, raters, asked, judged, panels), rules)
        for aspect in aspects
        if aspect.pk in heard
    }
    return Report(
        evaluation=evaluation.slug,
        comparisons=len(gathered.comparisons),
        judges=summaries(reports),
        aspects=reports,
        no_verdicts=tuple(aspect.name for aspect in aspects if aspect.pk not in heard),
        rules=in_words(rules),
    )


def is_wanted(rater: Rater, with_judges: bool, only_judge: int | None) -> bool:
    if rater.kind != RaterKind.JUDGE:
        return True
    return with_judges and only_judge in (None, rater.pk)


def panels_of(evaluation: Evaluation, raters: Sequence[Rater]) -> dict[str, tuple[str, ...]]:
    """The judges that were started together, all of them among these raters; by the name of their panel."""
    names = {rater.judge_id: rater.name for rater in raters if rater.judge}
    batches: dict[uuid.UUID, set[int]] = defaultdict(set)
    for batch, judge in Run.objects.filter(evaluation=evaluation).values_list("batch", "judge_id"):
        batches[batch].add(judge)
    panels = {frozenset(judges) for judges in batches.values() if len(judges) > 1 and names.keys() >= judges}
    members = sorted(tuple(sorted(names[judge] for judge in judges)) for judges in panels)
    return {f"panel: {', '.join(one)}": one for one in members}


def what_was_asked(evaluation: Evaluation, comparisons: QuerySet[Comparison], raters: Sequence[Rater]) -> Asked:
    rows = RubricAspect.objects.filter(version__rubric__evaluation=evaluation).select_related(
        "version__rubric", "aspect"
    )
    finished = Review.objects.filter(state__in=[ReviewState.FIRST.value, ReviewState.FINAL.value])
    reviews = finished.filter(comparison__in=comparisons.order_by().values("pk")).order_by()
    used = set(reviews.values_list("rubric_version_id", flat=True).distinct())
    used |= {rater.judge.rubric_version_id for rater in raters if rater.judge and rater.judge.rubric_version_id}
    return Asked(list(rows.order_by("version__rubric__name", "version__number")), frozenset(used))


def aspects_in_order(evaluation: Evaluation, asked: Asked) -> list[Aspect]:
    """As the reviewers' rubric has them, then the others by key."""
    place = {row.aspect_id: row.position for row in asked.rows if row.version_id == evaluation.review_rubric_id}
    aspects = Aspect.objects.filter(evaluation=evaluation).order_by("key")
    return sorted(aspects, key=lambda aspect: place.get(aspect.pk, len(place)))


def judged_aspects(gathered: Gathered, raters: Sequence[Rater], asked: Asked) -> dict[int, set[int]]:
    """By rater id the aspects that each judge was asked about here.

    An imported judge has no rubric: where it only failed, its failures count on every aspect that has verdicts.
    """
    judged: dict[int, set[int]] = {}
    for rater in raters:
        if rater.judge is None:
            continue
        given = {aspect for judge, aspect in gathered.verdicts if judge == rater.pk}
        if rater.pk in gathered.unanswered or given:
            of_rubric = {row.aspect_id for row in asked.rows if row.version_id == rater.judge.rubric_version_id}
            judged[rater.pk] = given | of_rubric or gathered.aspects() or {row.aspect_id for row in asked.rows}
    return judged


def material(
    aspect: Aspect,
    gathered: Gathered,
    raters: Sequence[Rater],
    asked: Asked,
    judged: Mapping[int, set[int]],
    panels: Mapping[str, tuple[str, ...]],
) -> AspectMaterial:
    people = gathered.people.get(aspect.pk, NO_PEOPLE)
    rows = asked.about(aspect.pk)
    return AspectMaterial(
        name=aspect.name,
        items=len(gathered.comparisons),
        people=people.where(BLIND, UNKNOWN),
        late=people.where(SAW_JUDGE),
        seeing=seeing(aspect, people, gathered, raters),
        gold=gathered.gold.get(aspect.pk, NO_PEOPLE).votes,
        blind=len(people.where(BLIND).item),
        not_drawn=people.excluded(NOT_DRAWN),
        calibration=people.excluded(CALIBRATION),
        judges=tuple(
            judge_material(rater, aspect, gathered) for rater in raters if aspect.pk in judged.get(rater.pk, ())
        ),
        panels=panels,
        names=tuple(rater.name for rater in raters if rater.kind == RaterKind.HUMAN),
        offered=offered_by(rows),
        rubric_versions=tuple(f"{row.version.rubric.name}, version {row.version.number}" for row in rows),
        warnings=warnings_about(rows),
    )


def seeing(aspect: Aspect, people: PeopleRows, gathered: Gathered, raters: Sequence[Rater]) -> dict[str, Seeing]:
    """By the name of each judge here that reviews were shown, whichever the evaluation shows by now."""
    names = {rater.judge_id: rater.name for rater in raters if rater.judge_id}
    return {
        names[judge]: Seeing(
            blind=people.in_arm(BLIND_ARM, judge, gathered.shown),
            shown=people.in_arm(SHOWN_ARM, judge, gathered.shown),
            confirmed=gathered.confirmed.get((judge, aspect.pk), NONE_CONFIRMED),
        )
        for judge in gathered.shown.judges & names.keys()
    }


def judge_material(rater: Rater, aspect: Aspect, gathered: Gathered) -> JudgeMaterial:
    assert rater.judge is not None
    margin = gathered.scored.margins.get((rater.pk, aspect.pk), 0.0) if rater.judge.is_pointwise else None
    derived = None if margin is None else derived_remark(margin)
    return JudgeMaterial(
        name=rater.name,
        rater_id=rater.pk,
        kind=rater.judge.kind,
        label=BASELINE_REMARK if rater.judge.is_baseline else derived,
        verdicts=gathered.verdicts.get((rater.pk, aspect.pk), NO_VERDICTS),
        unanswered=gathered.unanswered.get(rater.pk, NO_CALLS),
        repaired=gathered.repaired.get(rater.pk, 0),
        derived=None if margin is None else Derived("scores", margin=margin),
        states=None if margin is None else gathered.scored.states.get(rater.pk, NOTHING),
    )


def offered_by(rows: Sequence[RubricAspect]) -> frozenset[int]:
    """The codes of the choices that any of these versions offers. A and B always are."""
    return frozenset({A, B, *(CHOICES.index(choice) for row in rows for choice in row.choices)})


def warnings_about(rows: Sequence[RubricAspect]) -> tuple[str, ...]:
    definitions = {row.definition for row in rows}
    if len(definitions) < 2:
        return ()
    return (f"Verdicts were given under {len(definitions)} different definitions of this aspect.",)


def comparisons_in_cell(
    evaluation: Evaluation,
    comparisons: QuerySet[Comparison],
    aspect: str,
    judge_rater_id: int,
    judge_choice: str,
    human_choice: str,
    rules: Rules | None = None,
) -> list[int]:
    """The ids of the comparisons that one cell of a judge's confusion matrix counts, in order."""
    rules = rules or Rules()
    row, column = choice_code(judge_choice), choice_code(human_choice)
    about = Aspect.objects.filter(evaluation=evaluation, key=aspect).first()
    if about is None:
        raise InputRefused(f"This evaluation has no aspect “{aspect}”.")
    raters = [rater for rater in raters_of(evaluation, rules) if is_wanted(rater, True, judge_rater_id)]
    gathered = gather(comparisons_where(comparisons, rules.where), raters, about.pk)
    items = len(gathered.comparisons)
    people = gathered.people.get(about.pk, NO_PEOPLE).where(BLIND, UNKNOWN)
    human = majority(people.item, people.choice, items, rules.split_rule).choice
    verdicts = gathered.verdicts.get((judge_rater_id, about.pk), NO_VERDICTS)
    unanswered = gathered.unanswered.get(judge_rater_id, NO_CALLS).without(verdicts)
    judge = consolidate(verdicts, unanswered, items, rules.failed).choice
    in_cell = (judge == row) & (human == column)
    return [int(found) for found in gathered.comparisons[in_cell]]


def choice_code(choice: str) -> int:
    try:
        return CHOICES.index(Choice(choice))
    except ValueError:
        known = ", ".join(CHOICES)
        raise InputRefused(f"“{choice}” is no choice: it is one of {known}.") from None
