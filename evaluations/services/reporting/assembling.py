"""The material of one aspect: what was said on it, as `stats` takes it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from evaluations.domain import BASELINE_REMARK, FailedRule, JudgeKind, RaterKind, Rules, ScoreRule, Seen
from evaluations.models import Aspect, Rater
from evaluations.services.reporting.asking import Asked, offered_by, score_rules_of, version_name, warnings_about
from evaluations.services.reporting.gathering import Gathered
from evaluations.services.reporting.voting import (
    BLIND,
    BLIND_ARM,
    CALIBRATION,
    KNEW,
    NOT_DRAWN,
    SAW_JUDGE,
    SHOWN_ARM,
    PeopleRows,
)
from evaluations.stats.anchoring import Confirmed, Seeing
from evaluations.stats.coding import BoolArray, IntArray
from evaluations.stats.consolidation import consolidate, with_failures
from evaluations.stats.coverage import selection
from evaluations.stats.deriving import Derived
from evaluations.stats.items import Items
from evaluations.stats.judges import JudgeMaterial
from evaluations.stats.report import AspectMaterial

NONE_CONFIRMED: Final = Confirmed(*(np.empty(0, dtype=np.int64) for _ in range(3)))


def materials_of(
    aspects: Sequence[Aspect],
    gathered: Gathered,
    items: Items,
    raters: Sequence[Rater],
    asked: Asked,
    judged: Mapping[int, set[int]],
    panels: Mapping[str, tuple[str, ...]],
    rules: Rules,
) -> Iterator[tuple[str, AspectMaterial]]:
    """By the aspect's key, each made when it is asked for."""
    for aspect in aspects:
        yield aspect.key, material(aspect, gathered, items, raters, asked, judged, panels, rules)


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
        days=kept_of(people.day, counted),
        active_ms=kept_of(people.active, counted),
        late=people.where(*(() if rules.seen is Seen.JUDGE else (SAW_JUDGE,))),
        undrawn=people.votes.where((people.picked == NOT_DRAWN) & np.isin(people.knew, KNEW[rules.seen])),
        seeing=seeing(aspect, people, gathered, raters),
        gold=gathered.gold_votes(aspect).votes,
        blind=len(people.where(BLIND).item) if rules.seen is not Seen.JUDGE else 0,
        not_drawn=people.excluded(NOT_DRAWN),
        calibration=people.excluded(CALIBRATION),
        judges=judge_materials(aspect, gathered, items, raters, judged, rules),
        panels=panels,
        names=tuple(rater.name for rater in raters if rater.kind == RaterKind.HUMAN),
        offered=offered_by(rows, gathered.preferred.has_tie(aspect.pk)),
        rubric_versions=tuple(version_name(row) for row in rows),
        warnings=warnings_about(rows),
        score_rules=score_rules_of(rows) if gathered.is_derived(aspect) else (),
        is_chosen=gathered.is_chosen(aspect),
    )


def kept_of(column: IntArray, kept: BoolArray) -> IntArray:
    """The column itself where all is kept: aspects share it then."""
    return column if kept.all() else column[kept]


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


def judge_materials(
    aspect: Aspect,
    gathered: Gathered,
    items: Items,
    raters: Sequence[Rater],
    judged: Mapping[int, set[int]],
    rules: Rules,
) -> tuple[JudgeMaterial, ...]:
    """Of the judges among them that were asked about the aspect."""
    asked = (rater for rater in raters if aspect.pk in judged.get(rater.pk, ()))
    return tuple(judge_material(rater, aspect, gathered, items, rules) for rater in asked)


def judge_material(rater: Rater, aspect: Aspect, gathered: Gathered, items: Items, rules: Rules) -> JudgeMaterial:
    assert rater.judge is not None
    verdicts, unanswered = gathered.said(rater, aspect)
    rule = score_rule(rater, aspect, gathered)
    derived = rule.remark if rule else None
    own = consolidate(verdicts, unanswered, len(gathered.comparisons), rules.failed)
    return JudgeMaterial(
        name=rater.name,
        rater_id=rater.pk,
        kind=rater.judge.kind,
        label=BASELINE_REMARK if rater.judge.is_baseline else derived,
        verdicts=verdicts,
        single=with_failures(verdicts, unanswered) if rules.failed is FailedRule.TIE else verdicts,
        own=own,
        selected=selection(own, None if rater.judge.kind == JudgeKind.IMPORTED else items.shuffle),
        states=gathered.states(rater, unanswered),
        repaired=gathered.repaired(rater),
        elsewhere=gathered.elsewhere(rater),
        derived=None if rule is None else Derived("scores", margin=rule.margin),
    )


def score_rule(rater: Rater, aspect: Aspect, gathered: Gathered) -> ScoreRule | None:
    """How this judge's choices on the aspect are derived; None where it gave them itself."""
    if rater.judge is not None and rater.judge.is_pointwise:
        return ScoreRule(gathered.scored.margins.get((rater.pk, aspect.pk), 0.0))
    return gathered.preferred.rules.get((rater.pk, aspect.pk))
