"""From verdicts to the report, and from a number of it back to the comparisons behind it.

What a report is made of is handed on from here, for the doors that show it.
"""

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from django.db.models import Exists, OuterRef, QuerySet

from evaluations.domain import (
    BASELINE_REMARK,
    Choice,
    InputRefused,
    Part,
    RaterKind,
    ReviewState,
    RubricKind,
    RubricOrigin,
    Rules,
    ScoreRule,
    Seen,
)
from evaluations.models import Aspect, Comparison, Evaluation, Rater, Review, RubricAspect, RubricVersion, Run
from evaluations.services.importing.scaling import asked_so_far
from evaluations.services.reporting.gathering import Gathered, gather
from evaluations.services.reporting.grading import read_aspect_scores
from evaluations.services.reporting.items import items_of, known_comparisons, places_of
from evaluations.services.reporting.narrowing import comparisons_where, raters_of
from evaluations.services.reporting.remembering import remembered
from evaluations.services.reporting.trusting import read_weights
from evaluations.services.reporting.unpacking import Places
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
from evaluations.services.reporting.weighing import with_strata
from evaluations.stats.agreement import Block as Block
from evaluations.stats.anchoring import Confirmed, Seeing
from evaluations.stats.coding import CHOICES, TIE, A, B
from evaluations.stats.consolidation import consolidate
from evaluations.stats.deriving import Derived
from evaluations.stats.items import Items
from evaluations.stats.judges import JudgeMaterial
from evaluations.stats.known import Known
from evaluations.stats.majority import majority
from evaluations.stats.numbers import Number as Number
from evaluations.stats.parts import Weights
from evaluations.stats.report import AspectMaterial
from evaluations.stats.report import AspectReport as AspectReport
from evaluations.stats.whole import Report as Report
from evaluations.stats.whole import whole_report

ALL_PARTS: Final = tuple(Part)
# Whose votes count: of imported ones it is not known whether they were blind.
KNEW: Final = {Seen.NOTHING: (BLIND, UNKNOWN), Seen.BLIND: (BLIND,), Seen.JUDGE: (SAW_JUDGE,)}
FINISHED: Final = (ReviewState.FIRST.value, ReviewState.FINAL.value)
NONE_CONFIRMED: Final = Confirmed(*(np.empty(0, dtype=np.int64) for _ in range(3)))


@dataclass(frozen=True)
class Asked:
    """What the rubric versions of an evaluation ask; ``used``: those that judges and reviews here worked with."""

    rows: Sequence[RubricAspect]
    used: frozenset[int]

    def about(self, aspect: int) -> list[RubricAspect]:
        """How the versions ask about this aspect: those in use, else all that do."""
        rows = [row for row in self.rows if row.aspect_id == aspect]
        return [row for row in rows if row.version_id in self.used] or rows


def report_for(evaluation: Evaluation, rules: Rules, *, parts: tuple[Part, ...] = ALL_PARTS) -> Report:
    """The report on everything, for whoever may see it: made once for each state of the evaluation."""
    return remembered(evaluation, (rules, parts), lambda: make_report(evaluation, None, rules, parts=parts))


def make_report(
    evaluation: Evaluation,
    comparisons: QuerySet[Comparison] | None,
    rules: Rules,
    *,
    with_judges: bool = True,
    only_judge: int | None = None,
    parts: tuple[Part, ...] = ALL_PARTS,
) -> Report:
    """Every number on the comparisons that the reader may see, None being all of them.

    With all judges, none, or one by its rater id.
    """
    everything = Comparison.objects.filter(evaluation=evaluation)
    wanted = comparisons_where(everything if comparisons is None else comparisons, rules.where)
    raters = [rater for rater in raters_of(evaluation, rules) if is_wanted(rater, with_judges, only_judge)]
    known = known_comparisons(evaluation)
    narrowed = None if comparisons is None and not rules.where else wanted
    places = places_of(known, narrowed)
    gathered = gather(places, wanted, raters, rules)
    asked = what_was_asked(evaluation, narrowed, raters)
    aspects = aspects_in_order(evaluation, asked)
    judged = judged_aspects(gathered, raters, asked, aspects)
    panels = panels_of(evaluation, raters)
    heard = gathered.aspects(aspects).union(*judged.values())
    items = with_strata(items_of(evaluation, known, places), evaluation)
    families = {rater.name: rater.judge.family for rater in raters if rater.judge}
    materials = {
        aspect.key: material(aspect, gathered, items, raters, asked, judged, panels, rules)
        for aspect in aspects
        if aspect.pk in heard
    }
    return whole_report(
        evaluation.slug,
        materials,
        Known(items, families),
        rules,
        parts,
        weights_by_aspect(raters, places, aspects) if Part.JUDGES in parts else {},
        read_aspect_scores(aspects, raters, wanted, places) if Part.SCORES in parts else {},
        no_verdicts=tuple(aspect.name for aspect in aspects if aspect.pk not in heard),
    )


def weights_by_aspect(
    raters: Sequence[Rater], places: Places, aspects: Sequence[Aspect]
) -> dict[str, dict[str, Weights]]:
    names, keys = {rater.pk: rater.name for rater in raters}, {aspect.pk: aspect.key for aspect in aspects}
    found: dict[str, dict[str, Weights]] = defaultdict(dict)
    for (rater, aspect), weights in read_weights(raters, places).items():
        found[keys[aspect]][names[rater]] = weights
    return found


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


def what_was_asked(evaluation: Evaluation, comparisons: QuerySet[Comparison] | None, raters: Sequence[Rater]) -> Asked:
    """None: on all comparisons."""
    rows = RubricAspect.objects.filter(version__rubric__evaluation=evaluation).select_related(
        "version__rubric", "aspect"
    )
    reviews = Review.objects.filter(rubric_version=OuterRef("pk"), state__in=FINISHED)
    if comparisons is not None:
        reviews = reviews.filter(comparison__in=comparisons.order_by().values("pk"))
    versions = RubricVersion.objects.filter(Exists(reviews), rubric__evaluation=evaluation)
    used = set(versions.values_list("pk", flat=True))
    used |= {rater.judge.rubric_version_id for rater in raters if rater.judge and rater.judge.rubric_version_id}
    used |= {asked.version_id for asked in asked_so_far(evaluation)}
    return Asked(list(rows.order_by("version__rubric__name", "version__number")), frozenset(used))


def aspects_in_order(evaluation: Evaluation, asked: Asked) -> list[Aspect]:
    """As the reviewers' rubric has them, then the others by key."""
    place = {row.aspect_id: row.position for row in asked.rows if row.version_id == evaluation.review_rubric_id}
    aspects = Aspect.objects.filter(evaluation=evaluation).order_by("key")
    return sorted(aspects, key=lambda aspect: place.get(aspect.pk, len(place)))


def judged_aspects(
    gathered: Gathered, raters: Sequence[Rater], asked: Asked, aspects: Sequence[Aspect]
) -> dict[int, set[int]]:
    """By rater id the aspects that each judge was asked about here.

    An imported judge has no rubric: where it only failed, its failures count on every aspect that has verdicts.
    """
    judged: dict[int, set[int]] = {}
    for rater in raters:
        if rater.judge is not None and gathered.was_asked(rater):
            of_rubric = {row.aspect_id for row in asked.rows if row.version_id == rater.judge.rubric_version_id}
            said = gathered.said_by(rater, aspects) | of_rubric
            judged[rater.pk] = said or gathered.aspects(aspects) or {row.aspect_id for row in asked.rows}
    return judged


def material(
    aspect: Aspect,
    gathered: Gathered,
    items: Items,
    raters: Sequence[Rater],
    asked: Asked,
    judged: Mapping[int, set[int]],
    panels: Mapping[str, tuple[str, ...]],
    rules: Rules,
) -> AspectMaterial:
    people = gathered.votes(aspect).between(rules.since, rules.until)
    counted = people.counted(*KNEW[rules.seen])
    rows = asked.about(aspect.pk)
    return AspectMaterial(
        name=aspect.name,
        items=len(gathered.comparisons),
        cluster=items.cluster,
        people=people.votes.where(counted),
        days=people.day[counted],
        active_seconds=np.where(people.active[counted] > 0, people.active[counted] / 1000, np.nan),
        late=people.where(*(() if rules.seen is Seen.JUDGE else (SAW_JUDGE,))),
        undrawn=people.votes.where((people.picked == NOT_DRAWN) & np.isin(people.knew, KNEW[rules.seen])),
        seeing=seeing(aspect, people, gathered, raters),
        gold=gathered.gold_votes(aspect).votes,
        blind=len(people.where(BLIND).item) if rules.seen is not Seen.JUDGE else 0,
        not_drawn=people.excluded(NOT_DRAWN),
        calibration=people.excluded(CALIBRATION),
        judges=tuple(
            judge_material(rater, aspect, gathered, rules) for rater in raters if aspect.pk in judged.get(rater.pk, ())
        ),
        panels=panels,
        names=tuple(rater.name for rater in raters if rater.kind == RaterKind.HUMAN),
        offered=offered_by(rows, gathered.preferred.has_tie(aspect.pk)),
        rubric_versions=tuple(version_name(row) for row in rows),
        warnings=warnings_about(rows),
    )


def version_name(row: RubricAspect) -> str:
    """As the report prints it; of imported scores with the rule by which choices are derived from them."""
    rule = ScoreRule(row.tie_margin, row.lower_is_better)
    remark = f" ({rule.remark})" if is_of_imported_scores(row) else ""
    return f"{row.version.rubric.name}, version {row.version.number}{remark}"


def is_of_imported_scores(row: RubricAspect) -> bool:
    rubric = row.version.rubric
    return rubric.origin == RubricOrigin.IMPORTED and rubric.kind == RubricKind.POINTWISE


def seeing(aspect: Aspect, people: PeopleRows, gathered: Gathered, raters: Sequence[Rater]) -> dict[str, Seeing]:
    """By the name of each judge here that reviews were shown, whichever the evaluation shows by now."""
    names = {rater.judge_id: rater.name for rater in raters if rater.judge_id}
    return {
        names[judge]: Seeing(
            blind=people.in_arm(BLIND_ARM, judge),
            shown=people.in_arm(SHOWN_ARM, judge),
            confirmed=gathered.confirmed.get((judge, aspect.place), NONE_CONFIRMED),
        )
        for judge in names.keys() & set(np.unique(people.judge).tolist())
    }


def judge_material(rater: Rater, aspect: Aspect, gathered: Gathered, rules: Rules) -> JudgeMaterial:
    assert rater.judge is not None
    verdicts, unanswered = gathered.said(rater, aspect)
    rule = score_rule(rater, aspect, gathered)
    derived = rule.remark if rule else None
    return JudgeMaterial(
        name=rater.name,
        rater_id=rater.pk,
        kind=rater.judge.kind,
        label=BASELINE_REMARK if rater.judge.is_baseline else derived,
        verdicts=verdicts,
        own=consolidate(verdicts, unanswered, len(gathered.comparisons), rules.failed),
        states=gathered.states(rater, unanswered),
        repaired=gathered.repaired(rater),
        derived=None if rule is None else Derived("scores", margin=rule.margin),
    )


def score_rule(rater: Rater, aspect: Aspect, gathered: Gathered) -> ScoreRule | None:
    """How this judge's choices on the aspect are derived; None where it gave them itself."""
    if rater.judge is not None and rater.judge.is_pointwise:
        return ScoreRule(gathered.scored.margins.get((rater.pk, aspect.pk), 0.0))
    return gathered.preferred.rules.get((rater.pk, aspect.pk))


def offered_by(rows: Sequence[RubricAspect], scores_tie: bool) -> frozenset[int]:
    """The codes of the choices that any of these versions offers. A and B always are.

    Of imported scores nobody knows whether they could be equal: a tie is offered where one occurs.
    """
    asked = [row for row in rows if not is_of_imported_scores(row)]
    offered = {A, B, *(CHOICES.index(choice) for row in asked for choice in row.choices)}
    return frozenset({*offered, TIE} if scores_tie else offered)


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
    wanted = comparisons_where(comparisons, rules.where)
    gathered = gather(places_of(known_comparisons(evaluation), wanted), wanted, raters, rules)
    items = len(gathered.comparisons)
    people = gathered.votes(about).between(rules.since, rules.until).where(*KNEW[rules.seen])
    human = majority(people.item, people.choice, items, rules.split_rule).choice
    judge = next((rater for rater in raters if rater.pk == judge_rater_id), None)
    if judge is None:
        return []
    own = consolidate(*gathered.said(judge, about), items, rules.failed).choice
    return [int(found) for found in gathered.comparisons[(own == row) & (human == column)]]


def choice_code(choice: str) -> int:
    try:
        return CHOICES.index(Choice(choice))
    except ValueError:
        known = ", ".join(CHOICES)
        raise InputRefused(f"“{choice}” is no choice: it is one of {known}.") from None
