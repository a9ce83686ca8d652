"""From verdicts to the report.

What a report is made of is handed on from here, for the doors that show it.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from django.db.models import QuerySet

from evaluations.domain import Part, RaterKind, Rules, SplitPart
from evaluations.models import Aspect, Comparison, Evaluation, Rater, Response, Run
from evaluations.services.reporting.asking import Asked, aspects_in_order, judged_aspects, what_was_asked
from evaluations.services.reporting.assembling import judge_materials, materials_of
from evaluations.services.reporting.gathering import gather
from evaluations.services.reporting.grading import read_aspect_scores
from evaluations.services.reporting.items import items_of, known_comparisons, places_of
from evaluations.services.reporting.locating import comparisons_in_cell as comparisons_in_cell
from evaluations.services.reporting.looks import look_at
from evaluations.services.reporting.narrowing import comparisons_of, judges_of_family, raters_of, single_responses
from evaluations.services.reporting.remembering import remembered
from evaluations.services.reporting.trusting import read_weights
from evaluations.services.reporting.unpacking import Places
from evaluations.services.reporting.weighing import with_strata
from evaluations.stats.agreement import Block as Block
from evaluations.stats.items import Items
from evaluations.stats.judges import JudgeReport as JudgeReport
from evaluations.stats.known import Known
from evaluations.stats.numbers import Number as Number
from evaluations.stats.parts import Weights
from evaluations.stats.report import AspectMaterial
from evaluations.stats.report import AspectReport as AspectReport
from evaluations.stats.scores import ScoresReport as ScoresReport
from evaluations.stats.whole import BY_ASPECT as BY_ASPECT
from evaluations.stats.whole import Report as Report
from evaluations.stats.whole import whole_report

ALL_PARTS: Final = tuple(Part)
ON_TEST_PART: Final = Rules(part=SplitPart.TEST)


def report_for(
    evaluation: Evaluation, rules: Rules, *, parts: tuple[Part, ...] = ALL_PARTS, aspect: str | None = None
) -> Report:
    """The report on everything, for whoever may see it: made once for each state of the evaluation."""
    asked = (rules, parts, aspect)
    return remembered(evaluation, asked, lambda: make_report(evaluation, None, rules, parts=parts, aspect=aspect))


def make_report(
    evaluation: Evaluation,
    comparisons: QuerySet[Comparison] | None,
    rules: Rules,
    *,
    with_judges: bool = True,
    parts: tuple[Part, ...] = ALL_PARTS,
    aspect: str | None = None,
) -> Report:
    """Every number on the comparisons that the reader may see, None being all of them.

    ``aspect``: the one that parts with a page for each aspect are about, as `whole_report` has it; None: all.
    """
    everything = Comparison.objects.filter(evaluation=evaluation)
    wanted = comparisons_of(
        everything if comparisons is None else comparisons, evaluation, rules, or_responses=comparisons is None
    )
    raters = [rater for rater in raters_of(evaluation, rules) if with_judges or rater.kind != RaterKind.JUDGE]
    known = known_comparisons(evaluation)
    narrowed = None if comparisons is None and not (rules.where or rules.sliced or rules.part) else wanted
    places = places_of(known, narrowed)
    gathered = gather(places, wanted, raters, rules)
    asked = what_was_asked(evaluation, narrowed, raters)
    aspects = aspects_in_order(evaluation, asked)
    judged = judged_aspects(gathered, raters, asked, aspects)
    panels = panels_of(evaluation, raters)
    heard = gathered.aspects(aspects).union(*judged.values())
    items = with_strata(items_of(evaluation, known, places), evaluation)
    families = {rater.name: rater.judge.family for rater in raters if rater.judge}
    told = [one for one in aspects if one.pk in heard]
    materials = materials_of(told, gathered, items, raters, asked, judged, panels, rules)
    family = judges_of_family(evaluation)
    if with_judges and Part.AGREEMENT in parts:
        hidden = [rater for rater in family if rater not in raters]
        materials = with_hidden(materials, told, hidden, raters, items, places, wanted, asked, rules)
    # Whoever sees only what they reviewed sees no response beyond it.
    alone = single_responses(evaluation, rules) if comparisons is None else Response.objects.none()
    del gathered  # it is large, and let go as soon as the last material is made
    return whole_report(
        evaluation.slug,
        materials,
        Known(items, families, len(family)),
        rules,
        parts,
        weights_by_aspect(raters, places, aspects) if Part.JUDGES in parts else {},
        read_aspect_scores(aspects, raters, wanted, places.ids, alone, rules) if Part.SCORES in parts else {},
        no_verdicts=tuple(one.name for one in aspects if one not in told),
        aspect=aspect,
        look_at=partial(look_at, evaluation) if comparisons is None and rules == ON_TEST_PART else None,
    )


def with_hidden(
    materials: Iterator[tuple[str, AspectMaterial]],
    aspects: Sequence[Aspect],
    hidden: Sequence[Rater],
    shown: Sequence[Rater],
    items: Items,
    places: Places,
    comparisons: QuerySet[Comparison],
    asked: Asked,
    rules: Rules,
) -> Iterator[tuple[str, AspectMaterial]]:
    """The same, each with what judges that filters leave out said on it: claims are controlled over these, too."""
    if not hidden:
        return materials
    gathered = gather(places, comparisons, hidden, rules)
    judged = judged_aspects(gathered, hidden, asked, aspects)
    by_key = {aspect.key: aspect for aspect in aspects}
    panels = panels_of(hidden[0].evaluation, [*shown, *hidden])
    return (
        (
            key,
            replace(
                one,
                hidden=judge_materials(by_key[key], gathered, items, hidden, judged, rules),
                hidden_panels={name: of for name, of in panels.items() if name not in one.panels},
            ),
        )
        for key, one in materials
    )


def weights_by_aspect(
    raters: Sequence[Rater], places: Places, aspects: Sequence[Aspect]
) -> dict[str, dict[str, Weights]]:
    names, keys = {rater.pk: rater.name for rater in raters}, {aspect.pk: aspect.key for aspect in aspects}
    found: dict[str, dict[str, Weights]] = defaultdict(dict)
    for (rater, aspect), weights in read_weights(raters, places).items():
        found[keys[aspect]][names[rater]] = weights
    return found


def panels_of(evaluation: Evaluation, raters: Sequence[Rater]) -> dict[str, tuple[str, ...]]:
    """The judges that were started together, all of them among these raters; by the name of their panel."""
    names = {rater.judge_id: rater.name for rater in raters if rater.judge}
    batches: dict[uuid.UUID, set[int]] = defaultdict(set)
    for batch, judge in Run.objects.filter(evaluation=evaluation).values_list("batch", "judge_id"):
        batches[batch].add(judge)
    panels = {frozenset(judges) for judges in batches.values() if len(judges) > 1 and names.keys() >= judges}
    members = sorted(tuple(sorted(names[judge] for judge in judges)) for judges in panels)
    return {f"panel: {', '.join(one)}": one for one in members}
