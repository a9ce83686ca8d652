"""How far reviewing has come: the pool, each round, each person. Only reads."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from django.db.models import Count, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, Greatest, Least

from evaluations.domain import DRAWN, SAVED_REVIEW_STATES, AssignmentState, PickedBy, ReviewState, RoundKind
from evaluations.models import Assignment, Comparison, Evaluation, Pick, QueueItem, Rater, Review, Round


@dataclass(frozen=True)
class Pool:
    """What everyone takes from: ``drawn`` comparisons are the random sample that estimates rest on.

    ``calibrating``: in an open calibration. Everybody meets them there, and takes no place: until it
    is closed no more reviews of them are wanted than there are.
    """

    comparisons: int
    drawn: int
    reviews: int
    wanted: int
    calibrating: int = 0


@dataclass(frozen=True)
class RoundProgress:
    """``reviews`` counts no more of a comparison than the round wants; ``drawn`` those that chance picked.

    ``calibrating`` of its comparisons are in an open calibration, which keeps so many reviews ``waiting``.
    """

    round: Round
    comparisons: int = 0
    drawn: int = 0
    reviews: int = 0
    people: int = 0
    calibrating: int = 0
    waiting: int = 0

    @property
    def wanted(self) -> int:
        return self.comparisons * self.round.reviews_wanted - self.waiting

    @property
    def is_calibration(self) -> bool:
        return self.round.kind == RoundKind.CALIBRATION


@dataclass(frozen=True)
class Work:
    """What one person has done by the rubric in force, or within a round.

    ``reasons``: why they skipped, each with how often, the most frequent first.
    """

    name: str
    done: int = 0
    given: int = 0
    open: int = 0
    skipped: int = 0
    median_seconds: float | None = None
    reasons: tuple[tuple[str, int], ...] = ()


def pool_of(evaluation: Evaluation) -> Pool:
    """Comparisons that no item stands for yet are wanted too."""
    version = evaluation.review_rubric_id
    comparisons = Comparison.objects.filter(evaluation=evaluation).count()
    items = QueueItem.objects.filter(rubric_version=version, comparison__evaluation=evaluation)
    told = items.aggregate(
        known=Count("pk"), drawn=Count("pk", filter=Q(drawn=True)), wanted=Coalesce(Sum("wanted"), 0)
    )
    reviews = saved_reviews(version).filter(comparison__evaluation=evaluation).count()
    unknown = max(comparisons - told["known"], 0)
    wanted = told["wanted"] + unknown * evaluation.reviews_wanted
    missing = Greatest(F("wanted") - F("taken"), 0)
    kept = items.filter(pk__in=in_calibration()).aggregate(items=Count("pk"), missing=Coalesce(Sum(missing), 0))
    return Pool(comparisons, told["drawn"], reviews, wanted - kept["missing"], kept["items"])


def in_calibration() -> "QuerySet[Pick, int]":
    """The items that an open calibration holds."""
    held = Pick.objects.filter(round__kind=RoundKind.CALIBRATION, round__closed_at__isnull=True)
    return held.values_list("item", flat=True)


def given_to(evaluation: Evaluation, rater: Rater | None) -> int:
    """How many comparisons wait for this person by name."""
    if rater is None:
        return 0
    version = evaluation.review_rubric_id
    return Assignment.objects.filter(rater=rater, state=AssignmentState.NAMED, item__rubric_version=version).count()


@dataclass(frozen=True)
class Ending:
    """What would end with the version of the rubric in force: its open rounds, and what waits for people by name."""

    rounds: tuple[str, ...]
    given: int


def ending_with_rubric(evaluation: Evaluation) -> Ending:
    version = evaluation.review_rubric_id
    rounds = Round.objects.filter(rubric_version=version, closed_at__isnull=True).order_by("pk")
    given = Assignment.objects.filter(item__rubric_version=version, state=AssignmentState.NAMED)
    return Ending(tuple(rounds.values_list("name", flat=True)), given.count())


def saved_reviews(version_id: int | None) -> "QuerySet[Review]":
    """What people saved by this rubric, calibration left out."""
    saved: QuerySet[Review] = Review.objects.filter(rubric_version=version_id, state__in=SAVED_REVIEW_STATES)
    return saved.exclude(picked_by=PickedBy.CALIBRATION)


def progress_of(rounds: Collection[Round]) -> Mapping[int, RoundProgress]:
    """Round id → progress; four queries for any number of rounds."""
    picks = Pick.objects.filter(round__in=rounds).order_by("round").values_list("round")
    counted = picks.annotate(size=Count("pk"), drawn=Count("pk", filter=chance()))
    sizes = {number: (comparisons, drawn) for number, comparisons, drawn in counted}
    done = dict(picks.annotate(done=Sum(reviews_of_pick())))
    missing = Sum(F("round__reviews_wanted") - reviews_of_pick())
    held = picks.filter(item__in=in_calibration()).annotate(size=Count("pk"), missing=missing)
    kept = {number: (comparisons, reviews) for number, comparisons, reviews in held}
    people = dict(
        Assignment.objects.filter(pick__round__in=rounds)
        .values("pick__round")
        .annotate(people=Count("rater", distinct=True))
        .values_list("pick__round", "people")
    )
    return {
        one.pk: RoundProgress(
            one,
            *sizes.get(one.pk, (0, 0)),
            done.get(one.pk) or 0,
            people.get(one.pk, 0),
            *kept.get(one.pk, (0, 0)),
        )
        for one in rounds
    }


def chance() -> Q:
    return Q(picked_by__in=[word.value for word in DRAWN])


def reviews_of_pick() -> Least:
    """Whoever made them and however they came to it: it is done when it has as many as the round wants."""
    done = Assignment.objects.filter(item=OuterRef("item"), state=AssignmentState.DONE)
    counted = done.exclude(picked_by=PickedBy.CALIBRATION).order_by().values("item").annotate(number=Count("pk"))
    number = Subquery(counted.values("number"), output_field=IntegerField())
    return Least(Coalesce(number, 0), F("round__reviews_wanted"), output_field=IntegerField())


def work_in(made: Round) -> Sequence[Work]:
    """Who has to do with the round's comparisons through it, those with most of them first."""
    states = (AssignmentState.DONE, AssignmentState.NAMED, AssignmentState.HELD, AssignmentState.SKIPPED)
    given = Assignment.objects.filter(pick__round=made).values_list("rater__name")
    counted = given.annotate(**{state: Count("pk", filter=Q(state=state)) for state in states})
    found = [Work(*row) for row in counted]
    return sorted(found, key=lambda work: (-work.done - work.given, work.name))


def work_of(evaluation: Evaluation, raters: Collection[Rater]) -> Mapping[int, Work]:
    """Rater id → what they did, and how long the middle one of their reviews took them."""
    mine = Q(rater__in=raters)
    seconds: dict[int, list[int]] = defaultdict(list)
    saved = saved_reviews(evaluation.review_rubric_id).filter(mine)
    for rater, spent in saved.values_list("rater", "active_ms"):
        seconds[rater].append(spent)
    given = Assignment.objects.filter(
        mine, item__rubric_version=evaluation.review_rubric_id, state=AssignmentState.NAMED
    )
    waiting = dict(given.values_list("rater").annotate(Count("pk")))
    reasons = skipped_by(evaluation, raters)
    return {
        rater.pk: Work(
            rater.name,
            len(seconds[rater.pk]),
            waiting.get(rater.pk, 0),
            skipped=sum(number for _, number in reasons[rater.pk]),
            median_seconds=middle(seconds[rater.pk]),
            reasons=tuple(reasons[rater.pk]),
        )
        for rater in raters
    }


def skipped_by(evaluation: Evaluation, raters: Collection[Rater]) -> Mapping[int, list[tuple[str, int]]]:
    """Rater id → why they skipped, with how often: what they have not reviewed since."""
    skipped = Review.objects.filter(
        rater__in=raters, rubric_version=evaluation.review_rubric_id, state=ReviewState.SKIPPED
    )
    counted = skipped.values_list("rater", "skip_reason").annotate(number=Count("pk"))
    reasons: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for rater, reason, number in counted.order_by("-number", "skip_reason"):
        reasons[rater].append((reason, number))
    return reasons


def middle(milliseconds: Collection[int]) -> float | None:
    """Of those that were measured: without JavaScript no time is."""
    measured = [one for one in milliseconds if one]
    return median(measured) / 1000 if measured else None


@dataclass(frozen=True)
class Said:
    """One comparison of a round: who has reviewed it, and for whom it waits."""

    pick: Pick
    done: tuple[str, ...]
    waiting: tuple[str, ...]


def said_on(picks: Sequence[Pick]) -> list[Said]:
    """One query for a page of picks."""
    states: dict[tuple[int, bool], list[str]] = defaultdict(list)
    known = Assignment.objects.filter(
        item__in=[pick.item_id for pick in picks],
        state__in=(AssignmentState.DONE, AssignmentState.NAMED, AssignmentState.HELD),
    )
    for item, state, name in known.order_by("rater__name").values_list("item", "state", "rater__name"):
        states[item, state == AssignmentState.DONE].append(name)
    return [Said(pick, tuple(states[pick.item_id, True]), tuple(states[pick.item_id, False])) for pick in picks]
