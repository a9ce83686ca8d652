"""What scores that came with imports say of two responses: votes of people and gold, and verdicts of judges.

A person's two scores of one sample make one vote, a judge's mean scores one verdict, by the direction and
the margin that the rubric of imported scores has for the aspect.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from django.db.models import Q, QuerySet

from evaluations.domain import RaterKind, ScoreRule
from evaluations.models import Comparison, Import, Rater, Score
from evaluations.services.balloting import day_of
from evaluations.services.importing.scaling import score_rules
from evaluations.services.reporting.deriving import Sides, on_side, read_calls, read_sides
from evaluations.services.reporting.packing import Rows, groups
from evaluations.services.reporting.voting import (
    DRAWN_AT_RANDOM,
    NO_ARM,
    UNKNOWN,
    PeopleRows,
    numbered,
)
from evaluations.stats import coding
from evaluations.stats.coding import IntArray
from evaluations.stats.consolidation import Unanswered, Verdicts
from evaluations.stats.deriving import FloatArray, choice_of_scores, from_scores, means
from evaluations.stats.votes import Votes

SCORE: Final = np.dtype(
    [(name, np.int64) for name in ("rater", "response", "aspect", "sample", "day")] + [("value", np.float64)]
)
NO_RULE: Final = ScoreRule()


@dataclass(frozen=True)
class Preferred:
    """Votes by aspect id; verdicts by rater id and aspect id, and the rules by which they were derived.

    ``unanswered`` and ``states``: the failures that came with judges' scores, by rater id, as in `FromScores`.
    """

    people: Mapping[int, PeopleRows] = field(default_factory=dict)
    gold: Mapping[int, PeopleRows] = field(default_factory=dict)
    verdicts: Mapping[tuple[int, int], Verdicts] = field(default_factory=dict)
    rules: Mapping[tuple[int, int], ScoreRule] = field(default_factory=dict)
    unanswered: Mapping[int, Unanswered] = field(default_factory=dict)
    states: Mapping[int, IntArray] = field(default_factory=dict)

    def has_tie(self, aspect: int) -> bool:
        """Whether scores on it make a tie anywhere: forced ranks make none."""
        votes = [found[aspect].votes.choice for found in (self.people, self.gold) if aspect in found]
        verdicts = [one for (_, about), one in self.verdicts.items() if about == aspect]
        choices = [*votes, *(answers.choice for one in verdicts for answers in one.answers)]
        return any(bool((choice == coding.TIE).any()) for choice in choices)


def read_preferred(
    comparisons: QuerySet[Comparison], ids: IntArray, by_kind: Mapping[RaterKind, Sequence[Rater]]
) -> Preferred:
    """What these raters' imported scores come to on the comparisons, whose ids stand in order.

    One small query where no scores were imported.
    """
    raters = [rater for kind in RaterKind for rater in by_kind[kind]]
    rules = score_rules(Q(aspect__evaluation=raters[0].evaluation_id)) if raters and len(ids) else {}
    if not rules:
        return Preferred()
    sides = read_sides(comparisons, ids)
    rows = read_imported_scores(raters, sides)
    people, gold = (votes_of(rows, by_kind[kind], sides, rules) for kind in (RaterKind.HUMAN, RaterKind.GOLD))
    verdicts = verdicts_of(rows, by_kind[RaterKind.JUDGE], sides, rules)
    imported = [rater for rater in by_kind[RaterKind.JUDGE] if any(rater.pk == judge for judge, _ in verdicts)]
    unanswered, states, _ = read_calls(sides, imported) if imported else ({}, {}, {})
    told = {(rater, about): rules.get(about, NO_RULE) for rater, about in verdicts}
    return Preferred(people, gold, verdicts, told, unanswered, states)


def read_imported_scores(raters: Sequence[Rater], sides: Sides) -> Rows:
    """In the order in which they were stored, responses by place; the day is that on which their file came in."""
    given = Score.objects.filter(rater__in=raters, source_import__isnull=False)
    columns = given.order_by("pk").values_list(
        "rater_id", "response_id", "aspect_id", "sample", "source_import_id", "value"
    )
    rows = np.fromiter(columns.iterator(chunk_size=10_000), dtype=SCORE)
    rows["day"] = days_of_imports(rows["day"])
    place, known = sides.known(rows["response"])
    rows["response"] = place
    return rows[known]


def days_of_imports(ids: IntArray) -> IntArray:
    """When each of these imports came in, in days since 1970-01-01."""
    found, which = np.unique(ids, return_inverse=True)
    came = Import.objects.in_bulk(found.tolist())
    return np.array([day_of(came[one].created_at) for one in found.tolist()], dtype=np.int64)[which]


def of_raters(rows: Rows, raters: Sequence[Rater]) -> Rows:
    return rows[np.isin(rows["rater"], [rater.pk for rater in raters])]


# ---- people and gold -------------------------------------------------------------------------


def votes_of(
    rows: Rows, raters: Sequence[Rater], sides: Sides, rules: Mapping[int, ScoreRule]
) -> dict[int, PeopleRows]:
    place = {rater.pk: place for place, rater in enumerate(raters)}
    found = {}
    for (about,), part in groups(of_raters(rows, raters), "aspect"):
        item, at_a, at_b = pairs(part, sides)
        choice = by_rule(part["value"][at_a], part["value"][at_b], rules.get(about, NO_RULE))
        votes = Votes(item, numbered(part["rater"][at_a], place), np.full(len(item), coding.UNKNOWN), choice)
        found[about] = as_imported(votes, part["day"][np.maximum(at_a, at_b)])
    return found


def as_imported(votes: Votes, day: IntArray) -> PeopleRows:
    """Of no review, and what was shown not being told."""
    same = np.ones_like(votes.item)
    none = np.zeros_like(votes.item)
    return PeopleRows(
        votes,
        same * UNKNOWN,
        same * NO_ARM,
        same * DRAWN_AT_RANDOM,
        final=none,
        review=none,
        judge=none,
        day=day,
        active=none,
    )


def pairs(rows: Rows, sides: Sides) -> tuple[IntArray, IntArray, IntArray]:
    """Comparisons of which one rater scored both responses in one sample, and the places of the two scores.

    In the order in which the second of the two was stored. A score stands on a side of as many comparisons
    as its response does.
    """
    _, rater = np.unique(rows["rater"], return_inverse=True)
    passes = rater * (int(rows["sample"].max(initial=0)) + 1) + rows["sample"]
    before = passes * len(sides.a)  # one number for each pass over each comparison
    (item_a, of_a), (item_b, of_b) = (on_side(side, rows["response"]) for side in (sides.a, sides.b))
    both, at_a, at_b = np.intersect1d(
        before[of_a] + item_a, before[of_b] + item_b, assume_unique=True, return_indices=True
    )
    of_a, of_b = of_a[at_a], of_b[at_b]
    stored = np.argsort(np.maximum(of_a, of_b), kind="stable")
    return both[stored] % len(sides.a), of_a[stored], of_b[stored]


def by_rule(a: FloatArray, b: FloatArray, rule: ScoreRule) -> IntArray:
    return choice_of_scores(b, a, rule.margin) if rule.lower_is_better else choice_of_scores(a, b, rule.margin)


# ---- judges ----------------------------------------------------------------------------------


def verdicts_of(
    rows: Rows, judges: Sequence[Rater], sides: Sides, rules: Mapping[int, ScoreRule]
) -> dict[tuple[int, int], Verdicts]:
    """One of each comparison, by the mean over the samples of each response, as of judges that run here."""
    found = {}
    for (rater, about), part in groups(of_raters(rows, judges), "rater", "aspect"):
        mean = means(part["response"], part["value"], len(sides.responses))
        a, b = mean[sides.a], mean[sides.b]
        rule = rules.get(about, NO_RULE)
        found[rater, about] = from_scores(*((b, a) if rule.lower_is_better else (a, b)), rule.margin)
    return found
