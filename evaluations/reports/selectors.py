"""Reports, computed from the verdicts of an evaluation."""

import hashlib
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Final

from django.db import transaction
from django.db.models import Max, QuerySet

from evaluations.access import Action, is_allowed
from evaluations.domain.reports import ExcludedReviewer, ReportPart, ReportRules
from evaluations.domain.reviews import ScreeningChoice
from evaluations.domain.roles import RaterKind
from evaluations.domain.splits import SplitPart
from evaluations.evaluation_settings.selectors import describe_bar_change, format_day, get_bars_set_at
from evaluations.evaluation_settings.services import BAR_LABELS, read_bars, record_first_look
from evaluations.models.comparisons import IS_SINGLE, Comparison
from evaluations.models.evaluations import Evaluation, JudgeComparisonLook
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.runs import Run
from evaluations.models.selection import list_if_small_report, select_report_comparisons, select_single_responses
from evaluations.models.users import User
from evaluations.reports.cache import get_cached_report
from evaluations.reports.materials import (
    add_strata,
    build_judge_materials,
    iterate_aspect_materials,
    read_verdict_weights,
)
from evaluations.reports.score_material import read_aspect_scores
from evaluations.stats.aspect_report import AspectMaterial
from evaluations.stats.full_report import ALL_OF_AGREEMENT, BY_ASPECT, NEED_SCREENING, Report, full_report
from evaluations.stats.items import Items
from evaluations.stats.judge_comparison import HeldOutLook
from evaluations.stats.report_parts import JudgeWeights, StudyMaterial
from evaluations.stats.rule_descriptions import describe_excluded_reviewers
from evaluations.verdicts.asked_aspects import (
    AskedAspects,
    find_judged_aspects,
    list_aspects_in_order,
    read_asked_aspects,
)
from evaluations.verdicts.comparison_arrays import build_items, get_comparison_table, index_report_comparisons
from evaluations.verdicts.judge_arrays import ComparisonPositions
from evaluations.verdicts.verdict_arrays import (
    leave_out_excluded,
    list_judges_in_claim_family,
    list_selected_raters,
    read_verdict_arrays,
)
from evaluations.visibility import can_see_judges, reveal_comparisons, visible_comparisons


@transaction.atomic
def get_or_record_look(evaluation: Evaluation, results: str) -> HeldOutLook:
    """The look at the test part with these results, recorded if they are new."""
    sha256 = hashlib.sha256(results.encode()).hexdigest()
    Evaluation.objects.select_for_update().get(pk=evaluation.pk)
    looks = JudgeComparisonLook.objects.filter(evaluation=evaluation)
    seen = looks.filter(results_sha256=sha256).first()
    if seen is None:
        last = looks.aggregate(last=Max("number"))["last"] or 0
        seen = JudgeComparisonLook.objects.create(evaluation=evaluation, results_sha256=sha256, number=last + 1)
    return HeldOutLook(seen.number)


NEED_BARS: Final = frozenset({ReportPart.DECISIONS, ReportPart.METHODOLOGY})
NEED_SCORES: Final = frozenset({ReportPart.SCORES, ReportPart.METHODOLOGY})
ALL_PARTS: Final = tuple(ReportPart)

TEST_PART_RULES: Final = ReportRules(part=SplitPart.TEST)


def get_full_report(
    evaluation: Evaluation, rules: ReportRules, *, parts: tuple[ReportPart, ...] = ALL_PARTS, aspect: str | None = None
) -> Report:
    """The report on all comparisons, cached for each state of the evaluation."""
    cache_key = (rules, parts, aspect)
    return get_cached_report(
        evaluation, cache_key, lambda: build_report(evaluation, None, rules, parts=parts, aspect=aspect)
    )


def reveal_report(
    user: User, evaluation: Evaluation, rules: ReportRules, parts: tuple[ReportPart, ...], aspect: str | None
) -> Report:
    """The report that this person may see, as `build_report` has it.

    Where it is on few comparisons, they now count as having seen what others chose on each.
    """
    aspect = get_report_aspect(parts, aspect)
    comparisons = visible_comparisons(user, evaluation)
    singles = visible_comparisons(user, evaluation, Comparison.with_singles).filter(IS_SINGLE)
    if is_allowed(user, Action.SEE_ALL, evaluation):
        report = get_full_report(evaluation, rules, parts=parts, aspect=aspect)
    else:
        sees_judges = can_see_judges(user, evaluation)
        report = build_report(
            evaluation, comparisons, rules, singles=singles, with_judges=sees_judges, parts=parts, aspect=aspect
        )
    if is_allowed(user, Action.REVIEW, evaluation):  # no query for those who are never on record
        for rows in (comparisons, singles):
            reveal_comparisons(user, evaluation, list_if_small_report(rows, evaluation, rules))
    return report


def get_report_aspect(parts: Sequence[ReportPart], aspect: str | None) -> str | None:
    """The aspect that these parts are about; None for parts that have no page for each."""
    return aspect if any(part in BY_ASPECT for part in parts) else None


def build_report(
    evaluation: Evaluation,
    comparisons: QuerySet[Comparison] | None,
    rules: ReportRules,
    *,
    singles: QuerySet[Comparison] | None = None,
    with_judges: bool = True,
    parts: tuple[ReportPart, ...] = ALL_PARTS,
    aspect: str | None = None,
) -> Report:
    """The report on the comparisons that the reader may see; None means all of them.

    ``singles``: the single comparisons that a reader sees who does not see all.
    ``aspect``: the one that parts with a page for each aspect are about, as in `full_report`; None: all.
    """
    everything = Comparison.objects.filter(evaluation=evaluation)
    selected = select_report_comparisons(
        everything if comparisons is None else comparisons, evaluation, rules, or_responses=comparisons is None
    )
    chosen = list_selected_raters(evaluation, rules)
    counted = leave_out_excluded(chosen, rules)
    raters = [rater for rater in counted if with_judges or rater.kind != RaterKind.JUDGE]
    table = get_comparison_table(evaluation)
    narrowed = None if comparisons is None and not (rules.where or rules.saved_filter or rules.part) else selected
    places = index_report_comparisons(table, narrowed)
    gathered = read_verdict_arrays(places, selected, raters, rules)
    asked_aspects = read_asked_aspects(evaluation, narrowed, raters)
    aspects = list_aspects_in_order(evaluation, asked_aspects)
    judged = find_judged_aspects(gathered, raters, asked_aspects, aspects)
    panels = find_panels(evaluation, raters)
    with_verdicts = gathered.aspects(aspects).union(*judged.values())
    items = add_strata(build_items(evaluation, table, places), evaluation)
    families = {rater.name: rater.judge.family for rater in raters if rater.judge}
    reported = [row for row in aspects if row.pk in with_verdicts]
    materials = iterate_aspect_materials(reported, gathered, items, raters, asked_aspects, judged, panels, rules)
    family = list_judges_in_claim_family(evaluation)
    if with_judges and ALL_OF_AGREEMENT.intersection(parts):
        hidden = [rater for rater in family if rater not in raters]
        materials = add_hidden_judges(
            materials, reported, hidden, raters, items, places, selected, asked_aspects, rules
        )
    # A user who sees only reviewed comparisons sees no other responses.
    alone = select_single_responses(evaluation, rules)
    if comparisons is not None:
        alone = alone.none() if singles is None else alone.filter(pk__in=singles.order_by().values("response_a"))
    del gathered  # it is large, and let go as soon as the last material is made
    report = full_report(
        evaluation.slug,
        materials,
        StudyMaterial(
            items,
            families,
            len(family),
            read_bars(evaluation),
            frozenset(rater.name for rater in raters if rater.screening_choice == ScreeningChoice.KEEP),
            sum(rater.is_excluded for rater in chosen),
            screens_reviewers=comparisons is None,
        ),
        rules,
        parts,
        group_weights_by_aspect(raters, places, aspects) if ReportPart.JUDGES in parts else {},
        read_aspect_scores(aspects, raters, selected, places.ids, alone, rules, items.stratum)
        if NEED_SCORES.intersection(parts)
        else {},
        no_verdicts=tuple(row.name for row in aspects if row not in reported),
        aspect=aspect,
        look_at=partial(get_or_record_look, evaluation) if comparisons is None and rules == TEST_PART_RULES else None,
    )
    if any(decision.n for decision in report.decisions.values()):
        record_first_look(evaluation)
    if NEED_SCREENING.intersection(parts) and len(counted) < len(chosen):
        report = add_decisions_with_excluded(report, evaluation, comparisons, rules, with_judges=with_judges)
    if NEED_BARS.intersection(parts):
        report = replace(report, rules={**report.rules, "bars": describe_bars(evaluation)})
    # That a colleague was excluded is not told by name to those who see only their own comparisons.
    return add_excluded_reviewers(report, rules, chosen, are_named=comparisons is None)


def describe_bars(evaluation: Evaluation) -> str:
    """The bars of decisions, since when they hold, and whether they were changed after somebody had looked."""
    bars = asdict(read_bars(evaluation))
    values = ", ".join(f"{label} {100 * bars[name]:g}" for name, label in BAR_LABELS.items())
    sentence = f"Decision limits, in percent or points, set on {format_day(get_bars_set_at(evaluation))}: {values}."
    return " ".join(filter(None, (sentence, describe_bar_change(evaluation))))


def add_decisions_with_excluded(
    report: Report,
    evaluation: Evaluation,
    comparisons: QuerySet[Comparison] | None,
    rules: ReportRules,
    *,
    with_judges: bool,
) -> Report:
    """The report with the decisions and the screening that it would have with the reviewers the owner excluded."""
    parts = (ReportPart.DECISIONS,)
    rules = replace(rules, with_excluded=True)
    whole = build_report(evaluation, comparisons, rules, with_judges=with_judges, parts=parts)
    decided = whole.decisions if report.decisions else {}
    return replace(report, decisions_with_excluded=decided, screening=whole.screening)


def add_excluded_reviewers(report: Report, rules: ReportRules, raters: Sequence[Rater], *, are_named: bool) -> Report:
    """The report that says in its rules which of these reviewers the owner excluded."""
    excluded = [
        ExcludedReviewer(rater.name, rater.screening_chosen_at.date())
        for rater in raters
        if rater.is_excluded and rater.screening_chosen_at
    ]
    sentence = describe_excluded_reviewers(rules, excluded, are_named=are_named)
    if not sentence:
        return report
    return replace(report, rules={**report.rules, "raters": f"{report.rules['raters']} {sentence}"})


def add_hidden_judges(
    materials: Iterator[tuple[str, AspectMaterial]],
    aspects: Sequence[Aspect],
    hidden: Sequence[Rater],
    shown: Sequence[Rater],
    items: Items,
    places: ComparisonPositions,
    comparisons: QuerySet[Comparison],
    asked_aspects: AskedAspects,
    rules: ReportRules,
) -> Iterator[tuple[str, AspectMaterial]]:
    """The materials with the answers of judges that filters hide, since claims are controlled over all judges."""
    if not hidden:
        return materials
    gathered = read_verdict_arrays(places, comparisons, hidden, rules)
    judged = find_judged_aspects(gathered, hidden, asked_aspects, aspects)
    by_key = {aspect.key: aspect for aspect in aspects}
    panels = find_panels(hidden[0].evaluation, [*shown, *hidden])
    return (
        (
            key,
            replace(
                material,
                hidden=build_judge_materials(by_key[key], gathered, items, hidden, judged, rules),
                hidden_panels={name: judges for name, judges in panels.items() if name not in material.panels},
            ),
        )
        for key, material in materials
    )


def group_weights_by_aspect(
    raters: Sequence[Rater], places: ComparisonPositions, aspects: Sequence[Aspect]
) -> dict[str, dict[str, JudgeWeights]]:
    names, keys = {rater.pk: rater.name for rater in raters}, {aspect.pk: aspect.key for aspect in aspects}
    grouped: dict[str, dict[str, JudgeWeights]] = defaultdict(dict)
    for (rater, aspect), weights in read_verdict_weights(raters, places).items():
        grouped[keys[aspect]][names[rater]] = weights
    return grouped


def find_panels(evaluation: Evaluation, raters: Sequence[Rater]) -> dict[str, tuple[str, ...]]:
    """By panel name the judges that were started together, if all of them are among these raters."""
    names = {rater.judge_id: rater.name for rater in raters if rater.judge}
    batches: dict[uuid.UUID, set[int]] = defaultdict(set)
    for batch, judge in Run.objects.filter(evaluation=evaluation).values_list("batch", "judge_id"):
        batches[batch].add(judge)
    panels = {frozenset(judges) for judges in batches.values() if len(judges) > 1 and names.keys() >= judges}
    members = sorted(tuple(sorted(names[judge] for judge in judges)) for judges in panels)
    return {f"panel: {', '.join(panel)}": panel for panel in members}
