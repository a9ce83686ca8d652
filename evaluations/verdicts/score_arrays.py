"""Votes and verdicts as arrays, derived from scores of single responses: of judges, in reviews, and imported."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from django.db.models import BigIntegerField, Case, F, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Cast, Coalesce

from evaluations.domain.choices import PACKED_ORDERS, ScoreRule, Stage
from evaluations.domain.judges import FAILURE_STATES, CallState
from evaluations.domain.reviews import SAVED_REVIEW_STATES
from evaluations.domain.roles import RaterKind
from evaluations.domain.texts import ComparisonOrigin
from evaluations.models.comparisons import Comparison
from evaluations.models.imports import Import
from evaluations.models.judges import Rater
from evaluations.models.runs import Call
from evaluations.models.verdicts import Score
from evaluations.stats.coding import FOLDED, TIE, UNKNOWN, BoolArray, FloatArray, IntArray
from evaluations.stats.judge_verdicts import (
    STATES,
    JudgeVerdicts,
    UnansweredCalls,
    choices_from_scores,
    mean_by_unit,
    verdicts_from_scores,
)
from evaluations.stats.votes import Votes
from evaluations.verdicts import vote_arrays
from evaluations.verdicts.packed_votes import count_days_since_epoch
from evaluations.verdicts.score_choices import get_tie_margins, imported_score_rules, tie_margins_by_rater
from evaluations.verdicts.sql import MARKS_WIDTH, StructuredRows, encode_word, group_rows
from evaluations.verdicts.vote_arrays import (
    DRAWN_AT_RANDOM,
    NO_ARM,
    VOTE_MARKS,
    VoteArrays,
    decode_vote_marks,
    encode_vote_marks,
    number_raters,
)

SIDE_ROW: Final = np.dtype([("comparison", np.int64), ("a", np.int64), ("b", np.int64)])
SCORE_ROW: Final = np.dtype([("rater", np.int64), ("response", np.int64), ("aspect", np.int64), ("value", np.float64)])
CALL_ROW: Final = np.dtype([("judge", np.int64), ("response", np.int64), ("packed", np.int64)])


@dataclass(frozen=True)
class ScoreArrays:
    """By rater id and aspect id, or by rater id.

    ``states``: of each call without a score once, however many comparisons its response is in; in
    ``unanswered`` it stands with each of them.
    """

    verdicts: Mapping[tuple[int, int], JudgeVerdicts] = field(default_factory=dict)
    margins: Mapping[tuple[int, int], float] = field(default_factory=dict)
    unanswered: Mapping[int, UnansweredCalls] = field(default_factory=dict)
    states: Mapping[int, IntArray] = field(default_factory=dict)
    repaired: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ResponseSides:
    """The responses that occur, by id in order, and per comparison the places of its two among them."""

    responses: IntArray
    a: IntArray
    b: IntArray

    def known(self, ids: IntArray) -> tuple[IntArray, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
        """The place of each id among the responses, and whether it is one of them."""
        place = np.minimum(np.searchsorted(self.responses, ids), max(len(self.responses) - 1, 0))
        return place, self.responses[place] == ids if len(self.responses) else np.zeros(len(ids), dtype=bool)

    def comparisons_with(self, places: IntArray) -> tuple[IntArray, IntArray]:
        """Every comparison in which one of these responses stands, and the number of the response in ``places``."""
        (item_a, number_a), (item_b, number_b) = (find_on_side(side, places) for side in (self.a, self.b))
        return np.concatenate([item_a, item_b]), np.concatenate([number_a, number_b])


def add_responses(sides: ResponseSides, responses: IntArray) -> ResponseSides:
    """These responses as well, which no comparison has to hold."""
    every = np.union1d(sides.responses, responses)
    places = np.searchsorted(every, sides.responses)
    return ResponseSides(every, places[sides.a], places[sides.b])


def find_on_side(side: IntArray, places: IntArray) -> tuple[IntArray, IntArray]:
    """Every comparison that has one of these responses on this side, and the number of the response in ``places``."""
    order = np.argsort(side, kind="stable")
    first, last = (np.searchsorted(side[order], places, edge) for edge in ("left", "right"))
    count = last - first
    start = np.repeat(first - np.concatenate([[0], np.cumsum(count)[:-1]]), count)
    return order[start + np.arange(count.sum())], np.repeat(np.arange(len(places)), count)


def read_score_arrays(comparisons: QuerySet[Comparison], ids: IntArray, judges: Sequence[Rater]) -> ScoreArrays:
    """Choices from these judges' scores; comparison ids are sorted. Empty without scores."""
    if not judges or not len(ids):
        return ScoreArrays()
    sides = read_response_sides(comparisons, ids)
    margins = tie_margins_by_rater(judges)
    verdicts = {
        about: verdicts_from_scores(mean[sides.a], mean[sides.b], margins.get(about, 0.0))
        for about, mean in read_mean_scores(sides, [rater.pk for rater in judges]).items()
    }
    unanswered, states, repaired = read_calls_without_score(sides, judges)
    return ScoreArrays(verdicts, margins, unanswered, states, repaired)


def read_response_sides(comparisons: QuerySet[Comparison], ids: IntArray) -> ResponseSides:
    rows = np.fromiter(
        comparisons.order_by("pk").values_list("pk", "response_a_id", "response_b_id").iterator(chunk_size=10_000),
        dtype=SIDE_ROW,
    )
    rows = rows[np.isin(rows["comparison"], ids)]  # one that came meanwhile has no place
    responses, places = np.unique(np.concatenate([rows["a"], rows["b"]]), return_inverse=True)
    return ResponseSides(responses, *np.split(places, 2))


def read_mean_scores(sides: ResponseSides, raters: Sequence[int]) -> dict[tuple[int, int], FloatArray]:
    """By rater id and aspect id, the mean of what a judge gave each of the responses; NaN where it gave nothing."""
    columns = (
        Score.objects.filter(rater__in=raters).order_by().values_list("rater_id", "response_id", "aspect_id", "value")
    )
    rows = np.fromiter(columns.iterator(chunk_size=10_000), dtype=SCORE_ROW)
    place, known = sides.known(rows["response"])
    rows["response"] = place
    return {
        (rater, about): mean_by_unit(part["response"], part["value"], len(sides.responses))
        for (rater, about), part in group_rows(rows[known], "rater", "aspect")
    }


def read_calls_without_score(
    sides: ResponseSides, judges: Sequence[Rater]
) -> tuple[dict[int, UnansweredCalls], dict[int, IntArray], dict[int, int]]:
    """Calls without a score, their states, and how many verdicts were repaired, each by rater id."""
    unanswered, states, repaired = {}, {}, {}
    for rater, part in read_unscored_calls(sides, judges):
        answered = part["packed"] == len(STATES)
        repaired[rater] = int(answered.sum())
        states[rater] = part["packed"][~answered]
        item, number = sides.comparisons_with(part["response"][~answered])
        unanswered[rater] = UnansweredCalls(item, np.full(len(item), FOLDED), states[rater][number])
    return unanswered, states, repaired


def read_unscored_calls(sides: ResponseSides, judges: Sequence[Rater]) -> Iterator[tuple[int, StructuredRows]]:
    """By rater id, the calls on these responses without an answer, and those answered when asked a second time.

    ``packed``: the code of the state, len(STATES) of an answer; ``response``: by place.
    """
    rater_of = {rater.judge_id: rater.pk for rater in judges}
    unscored = Call.objects.filter(Q(repaired=True) | ~Q(state=CallState.ANSWERED.value), response__isnull=False)
    packed = encode_word("state", STATES, len(STATES))
    calls = unscored.filter(judge__in=list(rater_of)).order_by().values_list("judge_id", "response_id", packed)
    rows = np.fromiter(calls.iterator(chunk_size=10_000), dtype=CALL_ROW)
    place, known = sides.known(rows["response"])
    rows["response"] = place
    for (judge,), part in group_rows(rows[known], "judge"):
        yield rater_of[judge], part


def read_failed_responses(sides: ResponseSides, judges: Sequence[Rater]) -> dict[int, BoolArray]:
    """By rater id, whether a call of the judge on each response failed and none is waiting."""
    failed_responses = {}
    for rater, part in read_unscored_calls(sides, judges):
        failed, waiting = np.zeros((2, len(sides.responses)), dtype=bool)
        has_failed = part["packed"] < len(FAILURE_STATES)
        failed[part["response"][has_failed]] = True
        waiting[part["response"][~has_failed & (part["packed"] < len(STATES))]] = True
        failed_responses[rater] = failed & ~waiting
    return failed_responses


REVIEWED_SCORE_COLUMNS: Final = (
    *("review", "rater", "comparison", "aspect", "version"),
    *("side", "marks", "judge", "active", "day"),
)
REVIEWED_SCORE_ROW: Final = np.dtype([*((name, np.int64) for name in REVIEWED_SCORE_COLUMNS), ("value", np.float64)])
VOTE_COLUMNS: Final = ("item", "rater", "shown", "choice")


def read_scored_vote_arrays(
    comparisons: QuerySet[Comparison], place: Mapping[int, int], ids: IntArray
) -> dict[int, VoteArrays]:
    """Votes from people's first scores of both responses, by aspect id: the higher one beyond the margin wins."""
    if not place:
        return {}
    rows = read_reviewed_score_rows(comparisons, place, ids)
    if not len(rows):
        return {}
    margins = get_tie_margins(set(rows["version"].tolist()))
    return {about: pair_reviewed_scores(part, place, ids, margins) for (about,), part in group_rows(rows, "aspect")}


def read_reviewed_score_rows(
    comparisons: QuerySet[Comparison], place: Mapping[int, int], ids: IntArray
) -> StructuredRows:
    """A row for each first score of a saved review of one of these comparisons by one of these raters."""
    rows = read_review_rows(place, Q(review__comparison__in=comparisons.order_by().values("pk")))
    return rows[np.isin(rows["comparison"], ids)]


def read_single_score_rows(place: Mapping[int, int], sides: ResponseSides) -> StructuredRows:
    """As `read_reviewed_score_rows`, of single comparisons: ``comparison`` is the place of the response."""
    rows = read_review_rows(place, Q(review__comparison__origin=ComparisonOrigin.SINGLE), "response_id")
    rows["comparison"], known = sides.known(rows["comparison"])
    return rows[known]


def read_review_rows(place: Mapping[int, int], among: Q, subject: str = "review__comparison_id") -> StructuredRows:
    """A row for each first score of a saved review by one of these raters.

    ``subject``: the column that is read as ``comparison``.
    """
    scores = Score.objects.filter(
        among,
        rater__in=list(place),
        stage=Stage.FIRST.value,
        review__state__in=[state.value for state in SAVED_REVIEW_STATES],
    )
    side = Case(
        When(response=F("review__comparison__response_a"), then=Value(0)), default=Value(1), output_field=IntegerField()
    )
    marks = encode_word("review__shown", PACKED_ORDERS) * MARKS_WIDTH + encode_vote_marks()
    columns = scores.order_by("pk").values_list(
        "review_id",
        "rater_id",
        subject,
        "aspect_id",
        "review__rubric_version_id",
        side,
        marks,
        Cast(Coalesce("review__judge_id", 0), BigIntegerField()),
        "review__active_ms",
        "review__first_saved_at",
        "value",
    )
    dated = ((*row[:-2], count_days_since_epoch(row[-2]), row[-1]) for row in columns.iterator(chunk_size=10_000))
    return np.fromiter(dated, dtype=REVIEWED_SCORE_ROW)


def pair_reviewed_scores(
    rows: StructuredRows, place: Mapping[int, int], ids: IntArray, margins: Mapping[tuple[int, int], float]
) -> VoteArrays:
    first = rows[rows["side"] == 0]
    second = rows[rows["side"] == 1]
    _, at_first, at_second = np.intersect1d(first["review"], second["review"], return_indices=True)
    first, second = first[at_first], second[at_second]
    margin = np.array([margins.get((int(row["version"]), int(row["aspect"])), 0.0) for row in first])
    choice = choices_from_scores(first["value"], second["value"], margin)
    return build_reviewed_votes(first, np.searchsorted(ids, first["comparison"]), choice, place)


def build_reviewed_votes(
    rows: StructuredRows, item: IntArray, choice: IntArray, place: Mapping[int, int]
) -> VoteArrays:
    """A vote for each row, with all that is known of its review."""
    shown, marks = np.divmod(rows["marks"], MARKS_WIDTH)
    return VoteArrays(
        Votes(item, number_raters(rows["rater"], place), shown, choice),
        **decode_vote_marks(marks),
        review=rows["review"],
        judge=rows["judge"],
        day=rows["day"],
        active=rows["active"],
    )


def join_vote_arrays(parts: list[VoteArrays]) -> VoteArrays:
    """The votes on an aspect that some people gave as choices and others as scores."""
    if len(parts) == 1:
        return parts[0]
    votes = Votes(*(np.concatenate([getattr(part.votes, name) for part in parts]) for name in VOTE_COLUMNS))
    return VoteArrays(votes, *(np.concatenate([getattr(part, name) for part in parts]) for name in VOTE_MARKS))


IMPORTED_SCORE_ROW: Final = np.dtype(
    [(name, np.int64) for name in ("rater", "response", "aspect", "sample", "day")] + [("value", np.float64)]
)
DEFAULT_SCORE_RULE: Final = ScoreRule()


@dataclass(frozen=True)
class ImportedScoreArrays:
    """Votes by aspect id; verdicts by rater id and aspect id, and the rules by which they were derived.

    ``unanswered`` and ``states``: the failures that came with judges' scores, by rater id, as in `ScoreArrays`.
    """

    people: Mapping[int, VoteArrays] = field(default_factory=dict)
    gold: Mapping[int, VoteArrays] = field(default_factory=dict)
    verdicts: Mapping[tuple[int, int], JudgeVerdicts] = field(default_factory=dict)
    rules: Mapping[tuple[int, int], ScoreRule] = field(default_factory=dict)
    unanswered: Mapping[int, UnansweredCalls] = field(default_factory=dict)
    states: Mapping[int, IntArray] = field(default_factory=dict)

    def has_tie(self, aspect: int) -> bool:
        """Whether scores on it make a tie anywhere: forced ranks make none."""
        votes = [by_aspect[aspect].votes.choice for by_aspect in (self.people, self.gold) if aspect in by_aspect]
        verdicts = [derived for (_, about), derived in self.verdicts.items() if about == aspect]
        choices = [*votes, *(answers.choice for derived in verdicts for answers in derived.answers)]
        return any(bool((choice == TIE).any()) for choice in choices)


def read_imported_score_arrays(
    comparisons: QuerySet[Comparison], ids: IntArray, by_kind: Mapping[RaterKind, Sequence[Rater]]
) -> ImportedScoreArrays:
    """Choices from these raters' imported scores; comparison ids are sorted."""
    raters = [rater for kind in RaterKind for rater in by_kind[kind]]
    rules = imported_score_rules(Q(aspect__evaluation=raters[0].evaluation_id)) if raters and len(ids) else {}
    if not rules:
        return ImportedScoreArrays()
    sides = read_response_sides(comparisons, ids)
    rows = read_imported_score_rows(raters, sides)
    people, gold = (derive_votes(rows, by_kind[kind], sides, rules) for kind in (RaterKind.HUMAN, RaterKind.GOLD))
    verdicts = derive_verdicts(rows, by_kind[RaterKind.JUDGE], sides, rules)
    imported = [rater for rater in by_kind[RaterKind.JUDGE] if any(rater.pk == judge for judge, _ in verdicts)]
    unanswered, states, _ = read_calls_without_score(sides, imported) if imported else ({}, {}, {})
    used_rules = {(rater, about): rules.get(about, DEFAULT_SCORE_RULE) for rater, about in verdicts}
    return ImportedScoreArrays(people, gold, verdicts, used_rules, unanswered, states)


def read_imported_score_rows(raters: Sequence[Rater], sides: ResponseSides) -> StructuredRows:
    """In the order in which they were stored, responses by place; the day is that on which their file came in."""
    scores = Score.objects.filter(rater__in=raters, source_import__isnull=False)
    columns = scores.order_by("pk").values_list(
        "rater_id", "response_id", "aspect_id", "sample", "source_import_id", "value"
    )
    rows = np.fromiter(columns.iterator(chunk_size=10_000), dtype=IMPORTED_SCORE_ROW)
    rows["day"] = get_import_days(rows["day"])
    place, known = sides.known(rows["response"])
    rows["response"] = place
    return rows[known]


def get_import_days(ids: IntArray) -> IntArray:
    import_ids, which = np.unique(ids, return_inverse=True)
    imports = Import.objects.in_bulk(import_ids.tolist())
    days = [count_days_since_epoch(imports[pk].created_at) for pk in import_ids.tolist()]
    return np.array(days, dtype=np.int64)[which]


def select_rater_rows(rows: StructuredRows, raters: Sequence[Rater]) -> StructuredRows:
    return rows[np.isin(rows["rater"], [rater.pk for rater in raters])]


# ---- people and gold -------------------------------------------------------------------------


def derive_votes(
    rows: StructuredRows, raters: Sequence[Rater], sides: ResponseSides, rules: Mapping[int, ScoreRule]
) -> dict[int, VoteArrays]:
    place = {rater.pk: place for place, rater in enumerate(raters)}
    by_aspect = {}
    for (about,), part in group_rows(select_rater_rows(rows, raters), "aspect"):
        item, at_a, at_b = pair_scores(part, sides)
        choice = choose_by_rule(part["value"][at_a], part["value"][at_b], rules.get(about, DEFAULT_SCORE_RULE))
        votes = Votes(item, number_raters(part["rater"][at_a], place), np.full(len(item), UNKNOWN), choice)
        by_aspect[about] = build_imported_votes(votes, part["day"][np.maximum(at_a, at_b)])
    return by_aspect


def build_imported_votes(votes: Votes, day: IntArray) -> VoteArrays:
    """Votes from imported scores: they have no review, and the order shown is unknown."""
    unknown, none = np.full_like(votes.item, vote_arrays.UNKNOWN), np.zeros_like(votes.item)
    marks = {"knew": unknown, "arm": none + NO_ARM, "picked": none + DRAWN_AT_RANDOM}
    return VoteArrays(votes, **marks, final=none, review=none, judge=none, day=day, active=none)


def pair_scores(rows: StructuredRows, sides: ResponseSides) -> tuple[IntArray, IntArray, IntArray]:
    """Comparisons of which one rater scored both responses in one sample, and the places of the two scores.

    In the order in which the second of the two was stored. A score stands on a side of as many comparisons
    as its response does.
    """
    _, rater = np.unique(rows["rater"], return_inverse=True)
    passes = rater * (int(rows["sample"].max(initial=0)) + 1) + rows["sample"]
    before = passes * len(sides.a)  # one number for each pass over each comparison
    (item_a, of_a), (item_b, of_b) = (find_on_side(side, rows["response"]) for side in (sides.a, sides.b))
    both, at_a, at_b = np.intersect1d(
        before[of_a] + item_a, before[of_b] + item_b, assume_unique=True, return_indices=True
    )
    of_a, of_b = of_a[at_a], of_b[at_b]
    stored = np.argsort(np.maximum(of_a, of_b), kind="stable")
    return both[stored] % len(sides.a), of_a[stored], of_b[stored]


def choose_by_rule(a: FloatArray, b: FloatArray, rule: ScoreRule) -> IntArray:
    return choices_from_scores(b, a, rule.margin) if rule.lower_is_better else choices_from_scores(a, b, rule.margin)


# ---- judges ----------------------------------------------------------------------------------


def derive_verdicts(
    rows: StructuredRows, judges: Sequence[Rater], sides: ResponseSides, rules: Mapping[int, ScoreRule]
) -> dict[tuple[int, int], JudgeVerdicts]:
    """One of each comparison, by the mean over the samples of each response, as of judges that run here."""
    by_subject = {}
    for (rater, about), part in group_rows(select_rater_rows(rows, judges), "rater", "aspect"):
        mean = mean_by_unit(part["response"], part["value"], len(sides.responses))
        a, b = mean[sides.a], mean[sides.b]
        rule = rules.get(about, DEFAULT_SCORE_RULE)
        by_subject[rater, about] = verdicts_from_scores(*((b, a) if rule.lower_is_better else (a, b)), rule.margin)
    return by_subject
