"""Votes and verdicts as arrays, derived from imported scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from django.db.models import Q, QuerySet

from evaluations.domain.choices import ScoreRule
from evaluations.domain.roles import RaterKind
from evaluations.models.comparisons import Comparison
from evaluations.models.imports import Import
from evaluations.models.judges import Rater
from evaluations.models.verdicts import Score
from evaluations.stats.coding import TIE, UNKNOWN, FloatArray, IntArray
from evaluations.stats.judge_verdicts import (
    JudgeVerdicts,
    UnansweredCalls,
    choices_from_scores,
    mean_by_unit,
    verdicts_from_scores,
)
from evaluations.stats.votes import Votes
from evaluations.verdicts import vote_arrays
from evaluations.verdicts.array_rows import StructuredRows, group_rows
from evaluations.verdicts.packed_votes import count_days_since_epoch
from evaluations.verdicts.score_arrays import ResponseSides, find_on_side, read_calls_without_score, read_response_sides
from evaluations.verdicts.score_choices import imported_score_rules
from evaluations.verdicts.vote_arrays import DRAWN_AT_RANDOM, NO_ARM, VoteArrays, number_raters

IMPORTED_SCORE_ROW: Final = np.dtype(
    [(name, np.int64) for name in ("rater", "response", "aspect", "sample", "day")] + [("value", np.float64)]
)
DEFAULT_SCORE_RULE: Final = ScoreRule()


@dataclass(frozen=True)
class ImportedScoreArrays:
    """Votes by aspect id; verdicts by rater id and aspect id, and the rules by which they were derived.

    ``unanswered`` and ``states``: the failures that came with judges' scores, by rater id, as in `FromScores`.
    """

    people: Mapping[int, VoteArrays] = field(default_factory=dict)
    gold: Mapping[int, VoteArrays] = field(default_factory=dict)
    verdicts: Mapping[tuple[int, int], JudgeVerdicts] = field(default_factory=dict)
    rules: Mapping[tuple[int, int], ScoreRule] = field(default_factory=dict)
    unanswered: Mapping[int, UnansweredCalls] = field(default_factory=dict)
    states: Mapping[int, IntArray] = field(default_factory=dict)

    def has_tie(self, aspect: int) -> bool:
        """Whether scores on it make a tie anywhere: forced ranks make none."""
        votes = [found[aspect].votes.choice for found in (self.people, self.gold) if aspect in found]
        verdicts = [one for (_, about), one in self.verdicts.items() if about == aspect]
        choices = [*votes, *(answers.choice for one in verdicts for answers in one.answers)]
        return any(bool((choice == TIE).any()) for choice in choices)


def read_imported_score_arrays(
    comparisons: QuerySet[Comparison], ids: IntArray, by_kind: Mapping[RaterKind, Sequence[Rater]]
) -> ImportedScoreArrays:
    """Choices from these raters' imported scores; comparison ids are sorted.

    One small query where no scores were imported.
    """
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
    told = {(rater, about): rules.get(about, DEFAULT_SCORE_RULE) for rater, about in verdicts}
    return ImportedScoreArrays(people, gold, verdicts, told, unanswered, states)


def read_imported_score_rows(raters: Sequence[Rater], sides: ResponseSides) -> StructuredRows:
    """In the order in which they were stored, responses by place; the day is that on which their file came in."""
    given = Score.objects.filter(rater__in=raters, source_import__isnull=False)
    columns = given.order_by("pk").values_list(
        "rater_id", "response_id", "aspect_id", "sample", "source_import_id", "value"
    )
    rows = np.fromiter(columns.iterator(chunk_size=10_000), dtype=IMPORTED_SCORE_ROW)
    rows["day"] = get_import_days(rows["day"])
    place, known = sides.known(rows["response"])
    rows["response"] = place
    return rows[known]


def get_import_days(ids: IntArray) -> IntArray:
    """When each of these imports came in, in days since 1970-01-01."""
    found, which = np.unique(ids, return_inverse=True)
    came = Import.objects.in_bulk(found.tolist())
    return np.array([count_days_since_epoch(came[one].created_at) for one in found.tolist()], dtype=np.int64)[which]


def select_rater_rows(rows: StructuredRows, raters: Sequence[Rater]) -> StructuredRows:
    return rows[np.isin(rows["rater"], [rater.pk for rater in raters])]


# ---- people and gold -------------------------------------------------------------------------


def derive_votes(
    rows: StructuredRows, raters: Sequence[Rater], sides: ResponseSides, rules: Mapping[int, ScoreRule]
) -> dict[int, VoteArrays]:
    place = {rater.pk: place for place, rater in enumerate(raters)}
    found = {}
    for (about,), part in group_rows(select_rater_rows(rows, raters), "aspect"):
        item, at_a, at_b = pair_scores(part, sides)
        choice = choose_by_rule(part["value"][at_a], part["value"][at_b], rules.get(about, DEFAULT_SCORE_RULE))
        votes = Votes(item, number_raters(part["rater"][at_a], place), np.full(len(item), UNKNOWN), choice)
        found[about] = build_imported_votes(votes, part["day"][np.maximum(at_a, at_b)])
    return found


def build_imported_votes(votes: Votes, day: IntArray) -> VoteArrays:
    """Votes from imported scores: they have no review, and the order shown is unknown."""
    same = np.ones_like(votes.item)
    none = np.zeros_like(votes.item)
    return VoteArrays(
        votes,
        same * vote_arrays.UNKNOWN,
        same * NO_ARM,
        same * DRAWN_AT_RANDOM,
        final=none,
        review=none,
        judge=none,
        day=day,
        active=none,
    )


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
    found = {}
    for (rater, about), part in group_rows(select_rater_rows(rows, judges), "rater", "aspect"):
        mean = mean_by_unit(part["response"], part["value"], len(sides.responses))
        a, b = mean[sides.a], mean[sides.b]
        rule = rules.get(about, DEFAULT_SCORE_RULE)
        found[rater, about] = verdicts_from_scores(*((b, a) if rule.lower_is_better else (a, b)), rule.margin)
    return found
