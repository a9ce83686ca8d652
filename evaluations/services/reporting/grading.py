"""Scores of single responses as they were given, so that raters of responses can be held against each other."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from django.db.models import Exists, OuterRef, QuerySet

from evaluations.domain import RaterKind, Rules
from evaluations.models import Aspect, Candidate, Comparison, Rater, Response, Score
from evaluations.services.reporting.columns import columns
from evaluations.services.reporting.deriving import Sides, read_means, read_sides, with_others
from evaluations.services.reporting.packing import Rows, groups
from evaluations.services.reporting.preferring import as_imported, read_imported_scores
from evaluations.services.reporting.scoring_votes import as_reviewed, joined, read_reviewed_scores
from evaluations.services.reporting.voting import (
    BLIND,
    CALIBRATION,
    KNEW,
    NOT_DRAWN,
    SAW_JUDGE,
    UNKNOWN,
    PeopleRows,
    given_between,
    numbered,
)
from evaluations.stats import coding
from evaluations.stats.coding import BoolArray, IntArray
from evaluations.stats.consolidation import none_chosen
from evaluations.stats.contributions import FloatArray
from evaluations.stats.parts import AspectScores
from evaluations.stats.report import VoteCounts
from evaluations.stats.several_scores import Scores
from evaluations.stats.votes import Votes

SIDES: Final = 2  # of a comparison
NONE: Final = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class PeopleScores:
    """First scores of people on one aspect, by the places of their responses.

    ``rows``: the same as votes without a choice, so that they count by the rules of votes. What is voted on is one
    side of a comparison, or after all of these the response that a file scored.
    """

    rows: PeopleRows
    response: IntArray
    value: FloatArray

    def where(self, chosen: BoolArray) -> Scores:
        return Scores(self.response[chosen], self.rows.votes.rater[chosen], self.value[chosen])


@dataclass(frozen=True)
class Counted:
    """``people``: the scores that count; ``late``: where those are others, of reviews that saw the judge first."""

    people: Scores
    late: Scores
    counts: VoteCounts


def read_aspect_scores(
    aspects: Sequence[Aspect],
    raters: Sequence[Rater],
    comparisons: QuerySet[Comparison],
    ids: IntArray,
    responses: QuerySet[Response],
    rules: Rules,
) -> dict[str, AspectScores]:
    """By the aspect's key, in the order of the aspects. ``ids``: of the comparisons, in order.

    What was scored in a review counts where its comparison is one of these, whatever else its responses stand in;
    what came in files, and what judges said, where the response stands in one of them or is one of ``responses``.
    """
    if not Score.all_rows.filter(rater__in=raters).exists():
        return {}
    scored = responses.filter(Exists(Score.objects.filter(response=OuterRef("pk"), rater__in=raters)))
    sides = with_others(read_sides(comparisons, ids), *columns(scored.values_list("pk"), 1))
    people, judges = ([rater for rater in raters if rater.kind == kind] for kind in (RaterKind.HUMAN, RaterKind.JUDGE))
    given = read_people_scores(people, comparisons, ids, sides, rules)
    means = read_means(sides, [rater.pk for rater in judges])
    heard = given.keys() | {about for _, about in means}
    cluster, candidate, candidates = what_is_known(aspects[0].evaluation_id, sides)
    found = {}
    for aspect in aspects:
        if aspect.pk in heard:
            by_people = counted(given.get(aspect.pk, NO_SCORES), rules)
            found[aspect.key] = AspectScores(
                name=aspect.name,
                people=by_people.people,
                late=by_people.late,
                counts=by_people.counts,
                names=tuple(rater.name for rater in people),
                judges={one.name: means[one.pk, aspect.pk] for one in judges if (one.pk, aspect.pk) in means},
                cluster=cluster,
                candidate=candidate,
                candidates=candidates,
            )
    return found


def what_is_known(evaluation: int, sides: Sides) -> tuple[IntArray, IntArray, tuple[str, ...]]:
    """The cluster of each response, numbered from 0, the place of its candidate, and the candidates' names."""
    known = Response.all_rows.filter(query__evaluation=evaluation)
    response, cluster, candidate = columns(known.values_list("pk", "query__cluster_number", "candidate"), 3)
    place, here = sides.known(response)
    of = np.zeros((2, len(sides.responses)), dtype=np.int64)
    of[:, place[here]] = cluster[here], candidate[here]
    names = dict(Candidate.objects.filter(pk__in=np.unique(of[1]).tolist()).values_list("pk", "name"))
    in_order = sorted(names, key=lambda pk: names[pk])
    number = np.zeros(max(in_order, default=0) + 1, dtype=np.int64)
    number[in_order] = np.arange(len(in_order))
    return np.unique(of[0], return_inverse=True)[1], number[of[1]], tuple(names[pk] for pk in in_order)


def counted(given: PeopleScores, rules: Rules) -> Counted:
    knew, rows = KNEW[rules.seen], given.rows
    chosen, saw = rows.counted(*knew), rows.counted(SAW_JUDGE)
    return Counted(
        people=given.where(chosen),
        late=given.where(saw & ~chosen),
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
    people: Sequence[Rater], comparisons: QuerySet[Comparison], ids: IntArray, sides: Sides, rules: Rules
) -> dict[int, PeopleScores]:
    """By aspect id, given on the days that the rules speak of."""
    place = {rater.pk: place for place, rater in enumerate(people)}
    in_reviews = on_days(read_reviewed_scores(comparisons, place, ids), rules)
    in_files = on_days(read_imported_scores(people, sides), rules)
    found = defaultdict(list)
    for (about,), rows in groups(in_reviews, "aspect"):
        found[about].append(reviewed(rows, place, ids, sides))
    for (about,), rows in groups(in_files, "aspect"):
        found[about].append(imported(rows, place, ids))
    return {about: together(parts) for about, parts in found.items()}


def on_days(rows: Rows, rules: Rules) -> Rows:
    return rows[given_between(rows["day"], rules.since, rules.until)]


def reviewed(rows: Rows, place: Mapping[int, int], ids: IntArray, sides: Sides) -> PeopleScores:
    item = np.searchsorted(ids, rows["comparison"])
    response = np.where(rows["side"] == 0, sides.a[item], sides.b[item])
    votes = as_reviewed(rows, item * SIDES + rows["side"], none_chosen(len(rows)), place)
    return PeopleScores(votes, response, rows["value"])


def imported(rows: Rows, place: Mapping[int, int], ids: IntArray) -> PeopleScores:
    shown = np.full(len(rows), coding.UNKNOWN)
    votes = Votes(len(ids) * SIDES + rows["response"], numbered(rows["rater"], place), shown, none_chosen(len(rows)))
    return PeopleScores(as_imported(votes, rows["day"]), rows["response"], rows["value"])


def together(parts: Sequence[PeopleScores]) -> PeopleScores:
    response, value = (np.concatenate([getattr(one, name) for one in parts]) for name in ("response", "value"))
    return PeopleScores(joined([one.rows for one in parts]), response, value)


NO_SCORES: Final = PeopleScores(as_imported(Votes(NONE, NONE, NONE, NONE), NONE), NONE, np.empty(0))
