"""Scores of single responses in the form that the statistics take."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from django.db.models import Max, Min, Q, QuerySet

from evaluations.domain.groups import group_values
from evaluations.domain.reports import ReportRules
from evaluations.domain.reviews import StratifyBy
from evaluations.domain.roles import RaterKind
from evaluations.models.comparisons import Candidate, Comparison, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Aspect, RubricAspect
from evaluations.models.verdicts import Score
from evaluations.reports.materials import list_stratified_by
from evaluations.stats import coding
from evaluations.stats.aspect_report import VoteCounts
from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.judge_verdicts import no_choices
from evaluations.stats.post_stratification import response_strata
from evaluations.stats.score_reliability import PersonScores
from evaluations.stats.score_report import AspectScores
from evaluations.stats.votes import Votes
from evaluations.verdicts.score_arrays import (
    ResponseSides,
    add_responses,
    build_imported_votes,
    build_reviewed_votes,
    join_vote_arrays,
    read_failed_responses,
    read_imported_score_rows,
    read_mean_scores,
    read_response_sides,
    read_reviewed_score_rows,
    read_single_score_rows,
)
from evaluations.verdicts.score_choices import imported_score_rules
from evaluations.verdicts.sql import StructuredRows, group_rows, read_columns
from evaluations.verdicts.vote_arrays import (
    BLIND,
    CALIBRATION,
    KNOWLEDGE_COUNTED,
    NOT_DRAWN,
    SAW_JUDGE,
    UNKNOWN,
    VoteArrays,
    is_between_days,
    number_raters,
)

SIDES_PER_COMPARISON: Final = 2  # of a comparison
NO_POSITIONS: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class PeopleScores:
    """First scores of people on one aspect, by the places of their responses.

    ``rows``: the same as votes without a choice, so that they count by the rules of votes. What is voted on is one
    side of a comparison, or after all of these the response that a file or the review of a single one scored.
    """

    rows: VoteArrays
    response: IntArray
    value: FloatArray

    def where(self, chosen: BoolArray) -> PersonScores:
        return PersonScores(self.response[chosen], self.rows.votes.rater[chosen], self.value[chosen])


@dataclass(frozen=True)
class CountedScores:
    """``people``: the scores that count; ``late``: where those are others, of reviews that saw the judge first.

    ``picked_by_hand``: the responses of scores that do not count, because they were not drawn at random.
    """

    people: PersonScores
    late: PersonScores
    picked_by_hand: IntArray
    counts: VoteCounts


def read_aspect_scores(
    aspects: Sequence[Aspect],
    raters: Sequence[Rater],
    comparisons: QuerySet[Comparison],
    ids: IntArray,
    responses: QuerySet[Response],
    rules: ReportRules,
    stratum: IntArray | None = None,
) -> dict[str, AspectScores]:
    """By the aspect's key, in the order of the aspects. ``ids``: of the comparisons, in order; ``stratum``: of each.

    Scores of a review count if its comparison is one of these, even if other comparisons share its responses;
    what came in files, and what judges said, where the response stands in one of them or is one of ``responses``.
    Responses without a score are in it, too: a judge may have scored a part.
    """
    if not Score.all_rows.filter(rater__in=raters).exists():
        return {}
    sides = add_responses(read_response_sides(comparisons, ids), *read_columns(responses.values_list("pk"), 1))
    people, judges = ([rater for rater in raters if rater.kind == kind] for kind in (RaterKind.HUMAN, RaterKind.JUDGE))
    people_scores = read_people_scores(people, comparisons, ids, sides, rules)
    failed = read_failed_responses(sides, judges)
    means = read_mean_scores(sides, [rater.pk for rater in judges])
    means |= list_failed_scores(means.keys(), failed, judges, len(sides.responses))
    scored_aspects = people_scores.keys() | {about for _, about in means}
    cluster, candidate, candidates = read_response_facts(aspects[0].evaluation_id, sides)
    scales = read_score_scales([aspect for aspect in aspects if aspect.pk in scored_aspects], raters)
    of_responses = None if stratum is None else number_strata(aspects[0].evaluation, sides, stratum, candidate)
    by_aspect = {}
    for aspect in aspects:
        if aspect.pk in scored_aspects:
            by_people = count_people_scores(people_scores.get(aspect.pk, NO_SCORES), rules)
            scoring = [judge for judge in judges if (judge.pk, aspect.pk) in means]
            by_aspect[aspect.key] = AspectScores(
                name=aspect.name,
                people=by_people.people,
                saw_judge_first=by_people.late,
                counts=by_people.counts,
                names=tuple(rater.name for rater in people),
                judges={judge.name: means[judge.pk, aspect.pk] for judge in scoring},
                failed={
                    judge.name: failed[judge.pk] & np.isnan(means[judge.pk, aspect.pk])
                    for judge in scoring
                    if judge.pk in failed
                },
                cluster=cluster,
                candidate=candidate,
                candidates=candidates,
                responses=sides.responses,
                two_values=scales[aspect.pk].two_values,
                lower_is_better=scales[aspect.pk].lower_is_better,
                stratum=of_responses,
                picked_by_hand=by_people.picked_by_hand,
            )
    return by_aspect


def list_failed_scores(
    scored: Collection[tuple[int, int]], failed: Mapping[int, BoolArray], judges: Sequence[Rater], responses: int
) -> dict[tuple[int, int], FloatArray]:
    """No score of any response, for the aspects of the rubric of each judge all of whose calls failed."""
    unscored = [judge for judge in judges if judge.pk in failed and not any(rater == judge.pk for rater, _ in scored)]
    asked = {judge.pk: judge.judge.rubric_version_id for judge in unscored if judge.judge}
    rows = RubricAspect.objects.filter(version__in=[version for version in asked.values() if version]).order_by()
    aspects = group_values(rows.values_list("version_id", "aspect_id")) if asked else {}
    return {
        (rater, about): np.full(responses, np.nan)
        for rater, version in asked.items()
        for about in aspects.get(version or 0, ())
    }


def number_strata(evaluation: Evaluation, sides: ResponseSides, stratum: IntArray, candidate: IntArray) -> IntArray:
    """The stratum of each response, from those of its comparisons; a single one has its category or its candidate."""
    of_responses = response_strata(stratum, sides.a, sides.b, len(sides.responses))
    kinds = list_stratified_by(evaluation)
    is_single = np.ones(len(sides.responses), dtype=np.bool_)
    is_single[np.concatenate([sides.a, sides.b])] = False
    if not kinds or not is_single.any():
        return of_responses
    singles = np.zeros(len(sides.responses), dtype=np.int64)
    if StratifyBy.CATEGORY in kinds:
        responses = Response.all_rows.filter(query__evaluation=evaluation)
        category = dict(responses.values_list("pk", "query__category"))
        names = [category[pk] for pk in sides.responses[is_single].tolist()]
        singles[is_single] = np.unique(names, return_inverse=True)[1]
    if StratifyBy.CANDIDATE_PAIR in kinds:
        singles = singles * (int(candidate.max()) + 1) + candidate
    return np.where(is_single, of_responses.max() + 1 + singles, of_responses)


@dataclass(frozen=True)
class ScoreScale:
    """``two_values``: the lower and the higher, if no rubric offers others and no other occurs."""

    two_values: tuple[float, float] | None
    lower_is_better: bool


def read_score_scales(aspects: Sequence[Aspect], raters: Sequence[Rater]) -> dict[int, ScoreScale]:
    """By aspect id."""
    scores = Score.objects.filter(rater__in=raters, aspect__in=aspects).order_by()
    extremes = scores.values_list("aspect").annotate(low=Min("value"), high=Max("value"))
    ends = {about: (low, high) for about, low, high in extremes}
    rules = imported_score_rules(Q(aspect__in=aspects))
    return {
        aspect.pk: ScoreScale(
            find_two_values(aspect, ends[aspect.pk], scores) if aspect.pk in ends else None,
            aspect.pk in rules and rules[aspect.pk].lower_is_better,
        )
        for aspect in aspects
    }


def find_two_values(
    aspect: Aspect, observed: tuple[float, float], scores: QuerySet[Score]
) -> tuple[float, float] | None:
    """The ends of the scales of all rubrics; None if there is a value between them."""
    offered = RubricAspect.objects.filter(aspect=aspect, scale_min__isnull=False, scale_max__isnull=False)
    scales = list(offered.values_list("scale_min", "scale_max", "scale_step").distinct())
    low = min([observed[0], *(bottom for bottom, _, _ in scales if bottom is not None)])
    high = max([observed[1], *(top for _, top, _ in scales if top is not None)])
    has_more_steps = any(step and high - low > step for *_, step in scales)
    if low == high or has_more_steps or scores.filter(aspect=aspect).exclude(value__in=(low, high)).exists():
        return None
    return low, high


def read_response_facts(evaluation: int, sides: ResponseSides) -> tuple[IntArray, IntArray, tuple[str, ...]]:
    """The cluster of each response, numbered from 0, the place of its candidate, and the candidates' names."""
    responses = Response.all_rows.filter(query__evaluation=evaluation)
    response, cluster, candidate = read_columns(responses.values_list("pk", "query__cluster_number", "candidate"), 3)
    place, here = sides.known(response)
    facts = np.zeros((2, len(sides.responses)), dtype=np.int64)
    facts[:, place[here]] = cluster[here], candidate[here]
    names = dict(Candidate.objects.filter(pk__in=np.unique(facts[1]).tolist()).values_list("pk", "name"))
    in_order = sorted(names, key=lambda pk: names[pk])
    number = np.zeros(max(in_order, default=0) + 1, dtype=np.int64)
    number[in_order] = np.arange(len(in_order))
    return np.unique(facts[0], return_inverse=True)[1], number[facts[1]], tuple(names[pk] for pk in in_order)


def count_people_scores(scores: PeopleScores, rules: ReportRules) -> CountedScores:
    knew, rows = KNOWLEDGE_COUNTED[rules.seen], scores.rows
    chosen, saw = rows.counted(*knew), rows.counted(SAW_JUDGE)
    return CountedScores(
        people=scores.where(chosen),
        late=scores.where(saw & ~chosen),
        picked_by_hand=scores.response[(rows.picked == NOT_DRAWN) & np.isin(rows.knew, knew)],
        counts=VoteCounts(
            blind=int((chosen & (rows.knew == BLIND)).sum()),
            unknown=int((chosen & (rows.knew == UNKNOWN)).sum()),
            saw_judge_first=int(saw.sum()),
            not_drawn=rows.excluded(NOT_DRAWN),
            calibration=rows.excluded(CALIBRATION),
        ),
    )


# ---- people --------------------------------------------------------------------------------


def read_people_scores(
    people: Sequence[Rater], comparisons: QuerySet[Comparison], ids: IntArray, sides: ResponseSides, rules: ReportRules
) -> dict[int, PeopleScores]:
    """By aspect id, given on the days that the rules speak of."""
    place = {rater.pk: place for place, rater in enumerate(people)}
    in_reviews = filter_by_days(read_reviewed_score_rows(comparisons, place, ids), rules)
    of_singles = filter_by_days(read_single_score_rows(place, sides), rules)
    in_files = filter_by_days(read_imported_score_rows(people, sides), rules)
    by_aspect = defaultdict(list)
    for (about,), rows in group_rows(in_reviews, "aspect"):
        by_aspect[about].append(build_reviewed_scores(rows, place, ids, sides))
    for (about,), rows in group_rows(of_singles, "aspect"):
        by_aspect[about].append(build_single_scores(rows, place, ids))
    for (about,), rows in group_rows(in_files, "aspect"):
        by_aspect[about].append(build_imported_scores(rows, place, ids))
    return {about: concat_people_scores(parts) for about, parts in by_aspect.items()}


def filter_by_days(rows: StructuredRows, rules: ReportRules) -> StructuredRows:
    return rows[is_between_days(rows["day"], rules.since, rules.until)]


def build_reviewed_scores(
    rows: StructuredRows, place: Mapping[int, int], ids: IntArray, sides: ResponseSides
) -> PeopleScores:
    item = np.searchsorted(ids, rows["comparison"])
    response = np.where(rows["side"] == 0, sides.a[item], sides.b[item])
    votes = build_reviewed_votes(rows, item * SIDES_PER_COMPARISON + rows["side"], no_choices(len(rows)), place)
    return PeopleScores(votes, response, rows["value"])


def build_single_scores(rows: StructuredRows, place: Mapping[int, int], ids: IntArray) -> PeopleScores:
    unit = len(ids) * SIDES_PER_COMPARISON + rows["comparison"]
    votes = build_reviewed_votes(rows, unit, no_choices(len(rows)), place)
    return PeopleScores(votes, rows["comparison"], rows["value"])


def build_imported_scores(rows: StructuredRows, place: Mapping[int, int], ids: IntArray) -> PeopleScores:
    shown = np.full(len(rows), coding.UNKNOWN)
    votes = Votes(
        len(ids) * SIDES_PER_COMPARISON + rows["response"],
        number_raters(rows["rater"], place),
        shown,
        no_choices(len(rows)),
    )
    return PeopleScores(build_imported_votes(votes, rows["day"]), rows["response"], rows["value"])


def concat_people_scores(parts: Sequence[PeopleScores]) -> PeopleScores:
    response, value = (np.concatenate([getattr(part, name) for part in parts]) for name in ("response", "value"))
    return PeopleScores(join_vote_arrays([part.rows for part in parts]), response, value)


NO_SCORES: Final = PeopleScores(
    build_imported_votes(Votes(NO_POSITIONS, NO_POSITIONS, NO_POSITIONS, NO_POSITIONS), NO_POSITIONS),
    NO_POSITIONS,
    np.empty(0),
)
