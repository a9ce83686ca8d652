"""People's votes from the database into arrays, with what each knew and how its comparison was picked."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from django.db.models import BigIntegerField, Case, Exists, F, IntegerField, OuterRef, Q, QuerySet, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce

from evaluations.domain import DRAWN, SAVED_REVIEW_STATES, PickedBy, Reveal, ReviewState, Stage
from evaluations.models import Comparison, QueueItem, Review, RubricAspect, Score, Verdict
from evaluations.services.reporting.packing import CHOICE_WIDTH, MARKS_WIDTH, ORDER_WIDTH, Rows, code, groups, read
from evaluations.stats.anchoring import Confirmed
from evaluations.stats.coding import CHOICES, ORDERS, BoolArray, IntArray
from evaluations.stats.deriving import choice_of_scores
from evaluations.stats.votes import Votes

# What a vote of a person knew of the judge: the code is the place.
SAW_JUDGE, BLIND, UNKNOWN = range(3)
# Whether chance decided what the person saw, and what it decided.
NO_ARM, BLIND_ARM, SHOWN_ARM = range(3)
# How the comparison came to the person: what estimates may use, what they may not, and practice.
DRAWN_AT_RANDOM, NOT_DRAWN, CALIBRATION = range(3)
KINDS: Final = 3

# Agreement reads first choices: of finished reviews, and imported ones, which have only one.
FIRST_CHOICES: Final = Q(review__isnull=True) | Q(
    stage=Stage.FIRST.value, review__state__in=[state.value for state in SAVED_REVIEW_STATES]
)
SHOWN_JUDGE: Final = np.dtype([("review", np.int64), ("judge", np.int64)])
SCORED: Final = np.dtype(
    [(name, np.int64) for name in ("review", "rater", "comparison", "aspect", "version", "side", "marks")]
    + [("value", np.float64)]
)


@dataclass(frozen=True)
class ShownJudges:
    """Which judge each review was shown, or is to be: both by id, the reviews in order."""

    review: IntArray
    judge: IntArray

    @property
    def judges(self) -> set[int]:
        return set(self.judge.tolist())

    def of(self, reviews: IntArray) -> IntArray:
        """The judge of each of these, 0 where it has none."""
        if not len(self.review):
            return np.zeros(len(reviews), dtype=np.int64)
        place = np.minimum(np.searchsorted(self.review, reviews), len(self.review) - 1)
        return np.where(self.review[place] == reviews, self.judge[place], 0)


@dataclass(frozen=True)
class PeopleRows:
    """Votes of one kind of rater on one aspect. ``knew``, ``arm``, ``picked``: the codes above, one for each vote.

    ``review``: its id, 0 of what was imported.
    """

    votes: Votes
    knew: IntArray
    arm: IntArray
    picked: IntArray
    review: IntArray

    def where(self, *knew: int) -> Votes:
        """Those that estimates may use, of these kinds of knowing."""
        return self.one_of_each_person(np.isin(self.knew, knew) & self.drawn)

    def in_arm(self, arm: int, judge: int, shown: ShownJudges) -> Votes:
        """Those for which chance decided so about this judge."""
        return self.one_of_each_person((self.arm == arm) & (shown.of(self.review) == judge) & self.drawn)

    def one_of_each_person(self, kept: BoolArray) -> Votes:
        """Of a person's reviews of a comparison the newest among these. What was imported has no order: all count."""
        if not self.has_second_reviews:
            return self.votes.where(kept)
        places = np.flatnonzero(kept & (self.review > 0))
        newest_first = places[np.argsort(-self.review[places], kind="stable")]
        _, first = np.unique(self.subject[newest_first], return_index=True)
        chosen = kept & (self.review == 0)
        chosen[newest_first[first]] = True
        return self.votes.where(chosen)

    @cached_property
    def subject(self) -> IntArray:
        """One number for each person and comparison."""
        return self.votes.item * (int(self.votes.rater.max(initial=0)) + 1) + self.votes.rater

    @cached_property
    def has_second_reviews(self) -> bool:
        reviewed = self.subject[self.review > 0]
        return len(np.unique(reviewed)) < len(reviewed)

    def excluded(self, picked: int) -> int:
        return int((self.picked == picked).sum())

    @property
    def drawn(self) -> BoolArray:
        return np.equal(self.picked, DRAWN_AT_RANDOM)


def marks(review: str = "review") -> Combinable:
    """What a vote knew, its arm and how it was picked, as one number."""
    knew = Case(
        When(**{f"{review}__isnull": True}, then=Value(UNKNOWN)),
        When(**{f"{review}__blind": True}, then=Value(BLIND)),
        default=Value(SAW_JUDGE),
        output_field=IntegerField(),
    )
    arm = Case(
        When(**{f"{review}__reveal": Reveal.RANDOMISED.value, f"{review}__judge_first": True}, then=Value(SHOWN_ARM)),
        When(**{f"{review}__reveal": Reveal.RANDOMISED.value}, then=Value(BLIND_ARM)),
        default=Value(NO_ARM),
        output_field=IntegerField(),
    )
    return (knew * KINDS + arm) * KINDS + how_picked(review)


def how_picked(review: str) -> Case:
    """Imported votes are assumed to be of a random sample, which the rules say. What was not picked

    at random counts all the same once its turn in the random order has come.
    """
    came = QueueItem.objects.filter(
        drawn=True,
        rubric_version=OuterRef(f"{review}__rubric_version"),
        comparison=OuterRef(f"{review}__comparison"),
    )
    return Case(
        When(**{f"{review}__isnull": True}, then=Value(DRAWN_AT_RANDOM)),
        When(**{f"{review}__picked_by__in": [word.value for word in DRAWN]}, then=Value(DRAWN_AT_RANDOM)),
        When(**{f"{review}__picked_by": PickedBy.CALIBRATION.value}, then=Value(CALIBRATION)),
        When(Exists(came), then=Value(DRAWN_AT_RANDOM)),
        default=Value(NOT_DRAWN),
        output_field=IntegerField(),
    )


def packed_vote() -> Combinable:
    review = Cast(Coalesce("review_id", 0), BigIntegerField())
    order_and_choice = (review * ORDER_WIDTH + code("shown", ORDERS)) * CHOICE_WIDTH + code("choice", CHOICES)
    return order_and_choice * MARKS_WIDTH + marks()


def read_votes(verdicts: QuerySet[Verdict], place: Mapping[int, int], ids: IntArray) -> dict[int, PeopleRows]:
    """Votes by aspect id, in the order in which they were stored; ``place``: the number of each rater by its id."""
    if not place:
        return {}
    chosen = verdicts.filter(FIRST_CHOICES, rater__in=list(place)).order_by("pk")
    rows = read(chosen.values_list("rater_id", "comparison_id", "aspect_id", packed_vote()), ids)
    rows["rater"] = numbered(rows["rater"], place)
    return {aspect: unpacked_votes(part) for (aspect,), part in groups(rows, "aspect")}


def numbered(raters: IntArray, place: Mapping[int, int]) -> IntArray:
    return np.array([place[int(rater)] for rater in raters], dtype=np.int64)


def unpacked_votes(rows: Rows) -> PeopleRows:
    rest, told = np.divmod(rows["packed"], MARKS_WIDTH)
    rest, choice = np.divmod(rest, CHOICE_WIDTH)
    review, shown = np.divmod(rest, ORDER_WIDTH)
    return people_rows(Votes(rows["comparison"], rows["rater"], shown, choice), told, review)


def people_rows(votes: Votes, told: IntArray, review: IntArray) -> PeopleRows:
    rest, picked = np.divmod(told, KINDS)
    knew, arm = np.divmod(rest, KINDS)
    return PeopleRows(votes, knew, arm, picked, review)


def read_scored_votes(
    comparisons: QuerySet[Comparison], place: Mapping[int, int], ids: IntArray, aspect: int | None = None
) -> dict[int, PeopleRows]:
    """What people's first scores of the two responses say, by aspect id: the higher one beyond the margin wins."""
    if not place:
        return {}
    rows = read_scores(comparisons, place, aspect)
    known = np.isin(rows["comparison"], ids)
    rows = rows[known]
    if not len(rows):
        return {}
    margins = {
        (version, about): margin
        for version, about, margin in RubricAspect.objects.filter(version__in=set(rows["version"].tolist()))
        .order_by()
        .values_list("version_id", "aspect_id", "tie_margin")
    }
    found = {}
    for (about,), part in groups(rows, "aspect"):
        found[about] = paired(part, place, ids, margins)
    return found


def read_scores(comparisons: QuerySet[Comparison], place: Mapping[int, int], aspect: int | None) -> Rows:
    given = Score.objects.filter(
        rater__in=list(place),
        stage=Stage.FIRST.value,
        review__state__in=[state.value for state in SAVED_REVIEW_STATES],
        review__comparison__in=comparisons.order_by().values("pk"),
    )
    if aspect is not None:
        given = given.filter(aspect=aspect)
    side = Case(
        When(response=F("review__comparison__response_a"), then=Value(0)), default=Value(1), output_field=IntegerField()
    )
    told = code("review__shown", ORDERS) * MARKS_WIDTH + marks()
    columns = given.order_by("pk").values_list(
        "review_id",
        "rater_id",
        "review__comparison_id",
        "aspect_id",
        "review__rubric_version_id",
        side,
        told,
        "value",
    )
    return np.fromiter(columns.iterator(chunk_size=10_000), dtype=SCORED)


def paired(rows: Rows, place: Mapping[int, int], ids: IntArray, margins: Mapping[tuple[int, int], float]) -> PeopleRows:
    """The two scores of each review on one aspect, as one vote."""
    first = rows[rows["side"] == 0]
    second = rows[rows["side"] == 1]
    _, at_first, at_second = np.intersect1d(first["review"], second["review"], return_indices=True)
    first, second = first[at_first], second[at_second]
    margin = np.array([margins.get((int(one["version"]), int(one["aspect"])), 0.0) for one in first])
    choice = choice_of_scores(first["value"], second["value"], margin)
    shown, told = np.divmod(first["marks"], MARKS_WIDTH)
    item = np.searchsorted(ids, first["comparison"])
    return people_rows(Votes(item, numbered(first["rater"], place), shown, choice), told, first["review"])


def read_shown_judges(comparisons: QuerySet[Comparison], place: Mapping[int, int]) -> ShownJudges:
    reviews = Review.objects.filter(
        rater__in=list(place), comparison__in=comparisons.order_by().values("pk"), judge__isnull=False
    )
    columns = reviews.order_by("pk").values_list("pk", "judge_id")
    rows = np.fromiter(columns.iterator(chunk_size=10_000), dtype=SHOWN_JUDGE)
    return ShownJudges(rows["review"], rows["judge"])


def read_confirmed(
    verdicts: QuerySet[Verdict], place: Mapping[int, int], ids: IntArray, shown: ShownJudges
) -> dict[tuple[int, int], Confirmed]:
    """First and final choices of reviews that were blind and then saw a judge, by the judge's id and aspect id."""
    if not len(shown.review):
        return {}
    revealed = verdicts.filter(
        rater__in=list(place),
        review__state=ReviewState.FINAL.value,
        review__blind=True,
        review__judge__isnull=False,
        review__awaits_judge=False,
    ).exclude(review__finished_at=F("review__first_saved_at"))
    revealed = revealed.exclude(review__picked_by=PickedBy.CALIBRATION.value)
    final = Case(When(stage=Stage.FINAL.value, then=Value(1)), default=Value(0), output_field=IntegerField())
    packed = code("choice", CHOICES) * 2 + final
    rows = read(revealed.order_by().values_list("review_id", "comparison_id", "aspect_id", packed), ids)
    judge = shown.of(rows["rater"])
    return {
        (one, aspect): as_confirmed(part)
        for one in sorted(set(judge.tolist()))
        for (aspect,), part in groups(rows[judge == one], "aspect")
    }


def as_confirmed(rows: Rows) -> Confirmed:
    """The column of the rater holds the review."""
    first, final = (rows[rows["packed"] % 2 == stage] for stage in (0, 1))
    _, at_first, at_final = np.intersect1d(first["rater"], final["rater"], return_indices=True)
    first, final = first[at_first], final[at_final]
    return Confirmed(first["comparison"], first["packed"] // 2, final["packed"] // 2)


def together(*found: Mapping[int, PeopleRows]) -> dict[int, PeopleRows]:
    """The votes on an aspect that some people gave as choices and others as scores."""
    aspects = sorted({aspect for one in found for aspect in one})
    return {aspect: joined([one[aspect] for one in found if aspect in one]) for aspect in aspects}


def joined(parts: list[PeopleRows]) -> PeopleRows:
    if len(parts) == 1:
        return parts[0]
    votes = Votes(*(np.concatenate([getattr(one.votes, name) for one in parts]) for name in VOTE_COLUMNS))
    return PeopleRows(votes, *(np.concatenate([getattr(one, name) for one in parts]) for name in MARK_COLUMNS))


VOTE_COLUMNS: Final = ("item", "rater", "shown", "choice")
MARK_COLUMNS: Final = ("knew", "arm", "picked", "review")
