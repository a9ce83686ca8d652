"""The material of one aspect in the form that the statistics take."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from django.db.models import Exists, OuterRef

from evaluations.domain.choices import PACKED_ORDERS, ScoreRule
from evaluations.domain.judges import BASELINE_REMARK, JudgeKind
from evaluations.domain.reports import FailedRule, ReportRules, SeenRule
from evaluations.domain.reviews import SelectionMethod, StratifyBy
from evaluations.domain.roles import RaterKind
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.queues import Queue
from evaluations.models.rubrics import Aspect
from evaluations.models.runs import test_call_condition
from evaluations.models.verdicts import Review, Verdict
from evaluations.stats.anchoring import ConfirmedChoices, JudgeRevealVotes
from evaluations.stats.aspect_report import AspectMaterial
from evaluations.stats.coding import BoolArray, IntArray
from evaluations.stats.items import Items
from evaluations.stats.judge_report import JudgeMaterial
from evaluations.stats.judge_verdicts import Derivation, consolidate_verdicts, count_failures_as_ties, selection_mask
from evaluations.stats.report_parts import JudgeWeights
from evaluations.verdicts.asked_aspects import (
    AskedAspects,
    format_rubric_version,
    get_definition_warnings,
    get_offered_choices,
    list_score_rules,
)
from evaluations.verdicts.comparison_arrays import number_values
from evaluations.verdicts.judge_arrays import ComparisonPositions, find_unfinished_imports
from evaluations.verdicts.sql import encode_word, group_rows
from evaluations.verdicts.verdict_arrays import VerdictArrays
from evaluations.verdicts.vote_arrays import (
    BLIND,
    BLIND_ARM,
    CALIBRATION,
    KNOWLEDGE_COUNTED,
    NOT_DRAWN,
    SAW_JUDGE,
    SHOWN_ARM,
    VoteArrays,
)

NONE_CONFIRMED: Final = ConfirmedChoices(*(np.empty(0, dtype=np.int64) for _ in range(3)))


def iterate_aspect_materials(
    aspects: Sequence[Aspect],
    gathered: VerdictArrays,
    items: Items,
    raters: Sequence[Rater],
    asked_aspects: AskedAspects,
    judged: Mapping[int, set[int]],
    panels: Mapping[str, tuple[str, ...]],
    rules: ReportRules,
) -> Iterator[tuple[str, AspectMaterial]]:
    """Pairs of an aspect's key with its material, each built on demand."""
    for aspect in aspects:
        yield aspect.key, build_aspect_material(aspect, gathered, items, raters, asked_aspects, judged, panels, rules)


def build_aspect_material(
    aspect: Aspect,
    gathered: VerdictArrays,
    items: Items,
    raters: Sequence[Rater],
    asked_aspects: AskedAspects,
    judged: Mapping[int, set[int]],
    panels: Mapping[str, tuple[str, ...]],
    rules: ReportRules,
) -> AspectMaterial:
    people = gathered.votes(aspect).between(rules.since, rules.until)
    counted = people.counted(*KNOWLEDGE_COUNTED[rules.seen])
    rows = asked_aspects.about(aspect.pk)
    return AspectMaterial(
        name=aspect.name,
        items=len(gathered.comparisons),
        cluster=items.cluster,
        people=people.votes.where(counted),
        days=filter_column(people.day, counted),
        active_ms=filter_column(people.active, counted),
        saw_judge_first=people.where(*(() if rules.seen is SeenRule.JUDGE else (SAW_JUDGE,))),
        picked_by_hand=people.votes.where(
            (people.picked == NOT_DRAWN) & np.isin(people.knew, KNOWLEDGE_COUNTED[rules.seen])
        ),
        reveal_votes=build_seeing(aspect, people, gathered, raters),
        gold=gathered.gold_votes(aspect).votes,
        blind=len(people.where(BLIND).item) if rules.seen is not SeenRule.JUDGE else 0,
        not_drawn=people.excluded(NOT_DRAWN),
        calibration=people.excluded(CALIBRATION),
        judges=build_judge_materials(aspect, gathered, items, raters, judged, rules),
        panels=panels,
        names=tuple(rater.name for rater in raters if rater.kind == RaterKind.HUMAN),
        offered=get_offered_choices(rows, gathered.preferred.has_tie(aspect.pk)),
        rubric_versions=tuple(format_rubric_version(row) for row in rows),
        warnings=get_definition_warnings(rows),
        score_rules=list_score_rules(rows) if gathered.is_derived(aspect) else (),
        is_chosen=gathered.is_chosen(aspect),
    )


def filter_column(column: IntArray, is_kept: BoolArray) -> IntArray:
    """The column itself where all is kept: aspects share it then."""
    return column if is_kept.all() else column[is_kept]


def build_seeing(
    aspect: Aspect, people: VoteArrays, gathered: VerdictArrays, raters: Sequence[Rater]
) -> dict[str, JudgeRevealVotes]:
    """By the name of each judge here that reviews were shown, whichever the evaluation shows by now."""
    names = {rater.judge_id: rater.name for rater in raters if rater.judge_id}
    return {
        names[judge]: JudgeRevealVotes(
            blind=people.in_arm(BLIND_ARM, judge),
            shown=people.in_arm(SHOWN_ARM, judge),
            confirmed=gathered.confirmed.get((judge, aspect.slot), NONE_CONFIRMED),
        )
        for judge in names.keys() & set(np.unique(people.judge[people.judge > 0]).tolist())
    }


def build_judge_materials(
    aspect: Aspect,
    gathered: VerdictArrays,
    items: Items,
    raters: Sequence[Rater],
    judged: Mapping[int, set[int]],
    rules: ReportRules,
) -> tuple[JudgeMaterial, ...]:
    """Build the material of each judge that was asked about the aspect."""
    judges = (rater for rater in raters if aspect.pk in judged.get(rater.pk, ()))
    return tuple(build_judge_material(rater, aspect, gathered, items, rules) for rater in judges)


def build_judge_material(
    rater: Rater, aspect: Aspect, gathered: VerdictArrays, items: Items, rules: ReportRules
) -> JudgeMaterial:
    assert rater.judge is not None
    verdicts, unanswered = gathered.get_judge_verdicts(rater, aspect)
    rule = get_judge_score_rule(rater, aspect, gathered)
    derived = rule.remark if rule else None
    own = consolidate_verdicts(verdicts, unanswered, len(gathered.comparisons), rules.failed)
    return JudgeMaterial(
        name=rater.name,
        rater_id=rater.pk,
        kind=rater.judge.kind,
        label=BASELINE_REMARK if rater.judge.is_baseline else derived,
        verdicts=verdicts,
        individual=count_failures_as_ties(verdicts, unanswered) if rules.failed is FailedRule.TIE else verdicts,
        consolidated=own,
        selected=selection_mask(own, None if rater.judge.kind == JudgeKind.IMPORTED else items.random_order),
        states=gathered.states(rater, unanswered),
        repaired=gathered.repaired(rater),
        failed_elsewhere=gathered.elsewhere(rater),
        derived=None if rule is None else Derivation("scores", margin=rule.margin),
    )


def get_judge_score_rule(rater: Rater, aspect: Aspect, gathered: VerdictArrays) -> ScoreRule | None:
    """The rule by which a judge's scores on the aspect become choices; None if it chose directly."""
    if rater.judge is not None and rater.judge.is_pointwise:
        return ScoreRule(gathered.scored.margins.get((rater.pk, aspect.pk), 0.0))
    return gathered.preferred.rules.get((rater.pk, aspect.pk))


WEIGHT_DTYPE: Final = np.dtype(
    [*((name, np.int64) for name in ("rater", "comparison", "aspect", "shown")), ("weighted", np.float64)]
)


def read_verdict_weights(raters: Sequence[Rater], places: ComparisonPositions) -> dict[tuple[int, int], JudgeWeights]:
    """By rater id and aspect id, of judges that were asked for the probabilities of their labels."""
    judges = [rater for rater in raters if rater.judge is not None and rater.judge.logprobs]
    verdicts = Verdict.all_rows.filter(rater__in=judges, weighted__isnull=False).exclude(test_call_condition())
    if hidden := find_unfinished_imports({rater.evaluation_id for rater in judges}):
        verdicts = verdicts.exclude(source_import__in=hidden)
    columns = verdicts.order_by().values_list(
        "rater_id", "comparison_id", "aspect_id", encode_word("shown", PACKED_ORDERS), "weighted"
    )
    rows = np.fromiter(columns.iterator(chunk_size=10_000), dtype=WEIGHT_DTYPE)
    place, is_known = places.of(rows["comparison"])
    rows["comparison"] = place
    rows = rows if is_known is None else rows[is_known]
    return {
        (rater, about): JudgeWeights(part["comparison"], part["shown"], part["weighted"])
        for (rater, about), part in group_rows(rows, "rater", "aspect")
    }


def add_strata(items: Items, evaluation: Evaluation) -> Items:
    """With the strata that reviewed queues drew equally from: where both kinds did, each pair within each category.

    Queues take the next of each stratum in the one random order, so that all that is drawn of a stratum is together a
    simple random sample of it, whether it was drawn equally or at random.
    """
    kinds = list_stratified_by(evaluation)
    stratum = np.zeros(len(items), dtype=np.int64)
    if StratifyBy.CATEGORY in kinds:
        stratum += items.category
    if StratifyBy.CANDIDATE_PAIR in kinds:
        names = len(items.candidates)
        stratum = (stratum * names + items.candidate_a) * names + items.candidate_b
    return replace(items, stratum=number_values(stratum)) if kinds else items


def list_stratified_by(evaluation: Evaluation) -> set[str]:
    """By what the queues were stratified of which something is reviewed."""
    reviewed = Review.objects.filter(queue=OuterRef("pk"), selection_method=SelectionMethod.STRATIFIED.value)
    queues = Queue.objects.filter(Exists(reviewed), evaluation=evaluation, strategy=SelectionMethod.STRATIFIED.value)
    return set(queues.values_list("strata", flat=True))
