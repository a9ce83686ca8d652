"""The choices that scores of two responses make, and the margins and directions by which they make them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final, NamedTuple

from django.db.models import Q

from evaluations.domain.choices import Choice, CompleteSideScores, ScoreRule, SideScores, Stage
from evaluations.domain.judges import JudgeKind
from evaluations.domain.roles import RaterKind
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricOrigin
from evaluations.domain.vote_rules import ReviewFacts
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Rubric, RubricAspect
from evaluations.models.verdicts import Score


def imported_score_rules(among: Q) -> dict[int, ScoreRule]:
    """The rules that derive choices from two imported scores, by aspect id. One query."""
    brought = RubricAspect.objects.filter(
        among,
        version__rubric__origin=RubricOrigin.IMPORTED,
        version__rubric__kind=RubricKind.POINTWISE,
    )
    columns = brought.order_by("version__number").values_list("aspect_id", "tie_margin", "lower_is_better")
    return {aspect: ScoreRule(margin, lower) for aspect, margin, lower in columns}


def choose_by_scores(aspect: AspectSpec, score_a: float | None, score_b: float | None) -> Choice | None:
    """The choice that a reviewer's two scores make by the rubric's tie margin; None if a score is missing."""
    return ScoreRule(aspect.tie_margin).choice(score_a, score_b)


def comparison_response_ids(comparison_ids: Collection[int]) -> dict[int, tuple[int, int]]:
    rows = Comparison.with_singles.filter(pk__in=comparison_ids).values_list("pk", "response_a_id", "response_b_id")
    return {pk: (a, b) for pk, a, b in rows}


def derive_score_choices(
    raters: Sequence[Rater], sides: Mapping[int, tuple[int, int]]
) -> Mapping[int, Mapping[int, Mapping[str, CompleteSideScores]]]:
    """Rater id → comparison id → aspect key → what its scores say; absent where a response has none."""
    if not raters:
        return {}
    responses = {response for pair in sides.values() for response in pair}
    collected: dict[tuple[int, int, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    scores = Score.objects.filter(rater__in=raters, response__in=responses).order_by("pk")
    columns = scores.values_list("rater_id", "aspect_id", "aspect__key", "response_id", "value")
    for rater_id, aspect, key, response, value in columns:
        collected[rater_id, aspect, key][response].append(value)
    rules = score_rules_by_rater(raters)
    choices: dict[int, dict[int, dict[str, CompleteSideScores]]] = {rater.pk: defaultdict(dict) for rater in raters}
    for (rater_id, aspect, key), values in collected.items():
        rule = rules.get((rater_id, aspect), ScoreRule())
        for pk, (a, b) in sides.items():
            if a in values and b in values:
                choices[rater_id][pk][key] = CompleteSideScores(fmean(values[a]), fmean(values[b]), rule)
    return choices


def score_rules_by_rater(raters: Collection[Rater]) -> dict[tuple[int, int], ScoreRule]:
    """The rules that derive choices from scores, by rater and aspect id; imported judges have those of their files."""
    rules = {place: ScoreRule(margin) for place, margin in tie_margins_by_rater(raters).items()}
    imported = [rater for rater in raters if rater.judge is not None and rater.judge.kind == JudgeKind.IMPORTED]
    brought = imported_score_rules(Q(aspect__evaluation=imported[0].evaluation_id)) if imported else {}
    return rules | {(rater.pk, aspect): rule for rater in imported for aspect, rule in brought.items()}


def tie_margins_by_rater(raters: Iterable[Rater]) -> dict[tuple[int, int], float]:
    """The margin of a tie by rater id and aspect id, as the rubric of each judge has it."""
    version = {rater.pk: rater.judge.rubric_version_id for rater in raters if rater.judge}
    margins = get_tie_margins({pk for pk in version.values() if pk is not None})
    return {
        (rater, aspect): margins[margin_version, aspect]
        for rater, rubric_version in version.items()
        for margin_version, aspect in margins
        if margin_version == rubric_version
    }


def get_tie_margins(versions: Collection[int]) -> dict[tuple[int, int], float]:
    rows = RubricAspect.objects.filter(version__in=versions).order_by()
    columns = rows.values_list("version_id", "aspect_id", "tie_margin")
    return {(version, aspect): margin for version, aspect, margin in columns}


def score_rules_by_version(evaluation: Evaluation, aspects: Collection[int]) -> dict[tuple[int | None, int], ScoreRule]:
    """The rules that derive choices from two scores, by rubric version and aspect; None for those of files."""
    rows = RubricAspect.objects.filter(version__rubric__evaluation=evaluation).order_by()
    columns = rows.values_list("version_id", "aspect_id", "tie_margin", "lower_is_better")
    own: dict[tuple[int | None, int], ScoreRule] = {
        (version, aspect): ScoreRule(margin, lower) for version, aspect, margin, lower in columns
    }
    imported = imported_score_rules(Q(aspect__in=aspects))
    return {**own, **{(None, aspect): rule for aspect, rule in imported.items()}}


class ImportedScoreOfSide(NamedTuple):
    comparison: int
    aspect: int
    rater: int
    sample: int
    value: float
    rationale: str
    kind: str


@dataclass(frozen=True)
class ImportedPreference(CompleteSideScores):
    """The preference from two scores of one sample, by a person or gold."""

    comparison: int
    aspect: int
    rater: int
    sample: int
    rationale: str
    kind: RaterKind


def load_imported_preferences(
    comparison_ids: Collection[int], kinds: Collection[RaterKind] = (RaterKind.HUMAN,)
) -> list[ImportedPreference]:
    """One query where no response of these was scored in a file; three where some were."""
    first = {score[:4]: score for score in read_imported_scores_of_side("a", comparison_ids, kinds)}
    if not first:
        return []
    rules = imported_score_rules(Q(aspect__in={score.aspect for score in first.values()}))
    return [
        build_imported_preference(first[score[:4]], score, rules.get(score.aspect, ScoreRule()))
        for score in read_imported_scores_of_side("b", comparison_ids, kinds)
        if score[:4] in first
    ]


def read_imported_scores_of_side(
    side: str, comparison_ids: Collection[int], kinds: Collection[RaterKind]
) -> Iterator[ImportedScoreOfSide]:
    comparison = f"response__comparisons_as_{side}"
    imported = Score.objects.filter(source_import__isnull=False, rater__kind__in=kinds)
    rows = imported.filter(**{f"{comparison}__in": comparison_ids}).order_by("pk")
    columns = (comparison, "aspect_id", "rater_id", "sample", "value", "rationale", "rater__kind")
    return map(ImportedScoreOfSide._make, rows.values_list(*columns))


def build_imported_preference(a: ImportedScoreOfSide, b: ImportedScoreOfSide, rule: ScoreRule) -> ImportedPreference:
    rationale = " ".join(dict.fromkeys(text for text in (a.rationale, b.rationale) if text))
    return ImportedPreference(a.value, b.value, rule, *a[:4], rationale, RaterKind(a.kind))


@dataclass(frozen=True)
class ReviewScores(SideScores):
    """The scores that a reviewer gave on one aspect at one stage of a review."""

    comparison: int
    aspect: int
    rater: int
    review: ReviewFacts
    stage: Stage
    note: str
    reason: str


def load_review_scores(comparison_ids: Collection[int], among: Q | None = None) -> list[ReviewScores]:
    """One query where nobody scored in a review of these comparisons, else two."""
    rows = Score.objects.filter(among or Q(), review__comparison__in=comparison_ids).order_by("pk")
    by_side: dict[tuple[int, int, str], dict[str, ReviewScore]] = defaultdict(dict)
    for score in map(ReviewScore._make, rows.values_list(*REVIEW_SCORE_COLUMNS)):
        by_side[score.review, score.aspect, score.stage]["a" if score.response == score.response_a else "b"] = score
    margins = (
        get_tie_margins({score.version for sides in by_side.values() for score in sides.values()}) if by_side else {}
    )
    return [build_review_scores(sides, margins) for sides in by_side.values()]


class ReviewScore(NamedTuple):
    """A reviewer's score of one response, with what is known of the review."""

    review: int
    aspect: int
    stage: str
    response: int
    value: float
    note: str
    reason: str
    rater: int
    comparison: int
    response_a: int
    version: int
    state: str
    selection_method: str
    blind: bool


REVIEW_SCORE_COLUMNS: Final = (
    *("review_id", "aspect_id", "stage", "response_id", "value", "note", "reason", "rater_id"),
    *("review__comparison_id", "review__comparison__response_a_id", "review__rubric_version_id"),
    *("review__state", "review__selection_method", "review__blind"),
)


def build_review_scores(sides: Mapping[str, ReviewScore], margins: Mapping[tuple[int, int], float]) -> ReviewScores:
    first, *_ = scores = list(sides.values())
    value = {side: score.value for side, score in sides.items()}
    return ReviewScores(
        value.get("a"),
        value.get("b"),
        ScoreRule(margins.get((first.version, first.aspect), 0.0)),
        first.comparison,
        first.aspect,
        first.rater,
        ReviewFacts(first.review, first.state, first.selection_method, first.blind),
        Stage(first.stage),
        next((score.note for score in scores if score.note), ""),
        next((score.reason for score in scores if score.reason), ""),
    )


# ---- what was brought so far ---------------------------------------------------------------------


def find_imported_rubric(evaluation: Evaluation, kind: RubricKind) -> Rubric | None:
    return Rubric.objects.filter(evaluation=evaluation, origin=RubricOrigin.IMPORTED, kind=kind).first()


def list_imported_aspects(evaluation: Evaluation, kind: RubricKind = RubricKind.POINTWISE) -> list[RubricAspect]:
    """The aspects of the newest version of the rubric for imported scores, or for verdicts, in order."""
    rubric = find_imported_rubric(evaluation, kind)
    version = rubric.versions.order_by("-number").first() if rubric else None
    return list(version.rubric_aspects.select_related("aspect").order_by("position")) if version else []
