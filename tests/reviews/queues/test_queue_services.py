"""Queues, their strategies, and what is given to people by name."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import AssignmentState, QueueAudience, Reveal, SelectionMethod, StratifyBy
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import change_evaluation, move_to_archive
from evaluations.models.comparisons import Comparison, Query
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import get_or_create_rater
from evaluations.models.queues import Assignment, Queue, QueueItem, QueueProgress
from evaluations.models.users import User
from evaluations.models.verdicts import Label, Review, Verdict
from evaluations.reviews.queues import calibration
from evaluations.reviews.queues import services as queues_services
from evaluations.reviews.queues.calibration import create_calibration
from evaluations.reviews.queues.items import fill_default_queue
from evaluations.reviews.queues.reservations import release_expired_reservations
from evaluations.reviews.queues.sampler import QueuePlan
from evaluations.reviews.queues.selectors import get_queue_statuses
from evaluations.reviews.queues.services import (
    AssignmentCount,
    archive_queue,
    assign_comparisons,
    assign_queue_to_reviewers,
    delete_queue,
    preview_queue,
)
from evaluations.reviews.services import save_first_choices, skip_comparison
from tests.factories.evaluations import make_comparison, make_evaluation, make_member
from tests.factories.queue_state import assert_counters_are_right, take_next_comparison
from tests.factories.queues import make_queue
from tests.factories.verdicts import (
    ALL_A,
    ALL_B,
    get_or_make_aspect,
    make_imported_votes,
    make_judge_rater,
    make_judge_verdicts,
    make_scoring_judge,
)

pytestmark = pytest.mark.django_db


def comparisons(evaluation: Evaluation, number: int, **columns: Any) -> list[Comparison]:
    """In the random order they stand as they are made."""
    return [make_comparison(evaluation, **columns) for _ in range(number)]


def save_next(owner: User, evaluation: Evaluation) -> Review:
    pk = take_next_comparison(owner, evaluation)
    assert pk is not None
    return save_first_choices(owner, Comparison.objects.get(pk=pk), choices=ALL_A, version=0)


def slots_of(made: Queue) -> list[tuple[int, str, float | None]]:
    return list(made.slots.order_by("position").values_list("item__comparison", "selection_method", "probability"))


def by_random(evaluation: Evaluation, size: int, name: str = "first", **columns: object) -> Queue:
    columns = {"strategy": SelectionMethod.RANDOM, "user": None, **columns}
    return make_queue(evaluation, name=name, size=size, **columns)  # type: ignore[arg-type]


def drawn(evaluation: Evaluation) -> set[int]:
    return set(
        QueueItem.objects.filter(comparison__evaluation=evaluation, drawn=True).values_list("comparison", flat=True)
    )


def test_a_random_queue_takes_the_next_in_the_random_order_with_the_share_that_is_drawn(
    evaluation: Evaluation,
) -> None:
    """Ten comparisons: three are drawn, then two more: 3/10 and 5/10."""
    made = comparisons(evaluation, 10)
    first, second = by_random(evaluation, 3), by_random(evaluation, 2, "second")
    assert slots_of(first) == [(one.pk, "random", 0.3) for one in made[:3]]
    assert slots_of(second) == [(one.pk, "random", 0.5) for one in made[3:5]]
    assert drawn(evaluation) == {one.pk for one in made[:5]}
    assert (first.population, first.random_percent) == (10, 100)


def test_a_queue_comes_before_the_default_queue_the_oldest_first(owner: User, evaluation: Evaluation) -> None:
    change_evaluation(evaluation, {"reveal": Reveal.NEVER}, user=owner)
    made = comparisons(evaluation, 6)
    flipping(made[4])
    make_queue(evaluation, name="flips", strategy=SelectionMethod.FLIPS, size=1, random_percent=0, user=owner)
    by_random(evaluation, 1, "random")
    met = [save_next(owner, evaluation) for _ in range(3)]
    assert [one.comparison_id for one in met] == [made[4].pk, made[0].pk, made[1].pk]
    assert [(one.selection_method, one.probability) for one in met] == [
        ("flips", None),
        ("random", 1 / 6),
        ("random", 1.0),
    ]
    assert [one.queue.name if one.queue else None for one in met] == ["flips", "random", None]


def flipping(comparison: Comparison) -> None:
    """The judge prefers what it is shown first, on every aspect."""
    make_judge_verdicts(comparison, as_stored=ALL_A, swapped=ALL_B)
    judge = make_judge_rater(comparison.evaluation).judge
    change_evaluation(comparison.evaluation, {"shown_judge": judge}, user=None)


def test_flips_are_where_the_orders_of_the_shown_judge_differ(evaluation: Evaluation) -> None:
    made = comparisons(evaluation, 3)
    make_judge_verdicts(made[0], as_stored=ALL_A, swapped=ALL_A)
    flipping(made[1])
    found = make_queue(evaluation, name="flips", strategy=SelectionMethod.FLIPS, size=10, random_percent=0, user=None)
    assert slots_of(found) == [(made[1].pk, "flips", None)]


def test_a_flip_is_not_seen_in_an_order_that_has_no_answer(evaluation: Evaluation) -> None:
    made = comparisons(evaluation, 2)
    flipping(made[0])
    make_judge_verdicts(made[1], as_stored=ALL_A, swapped="pending")
    found = make_queue(evaluation, name="flips", strategy=SelectionMethod.FLIPS, size=10, random_percent=0, user=None)
    assert [pk for pk, _, _ in slots_of(found)] == [made[0].pk]


def test_every_queue_keeps_its_random_share_and_spreads_it(evaluation: Evaluation) -> None:
    """Of ten, forty percent at random: the first four. Six of those that flip fill it up."""
    made = comparisons(evaluation, 20)
    for comparison in made:
        flipping(comparison)
    mixed = make_queue(
        evaluation, name="mixed", strategy=SelectionMethod.FLIPS, size=10, random_percent=40, seed=3, user=None
    )
    slots = slots_of(mixed)
    assert [pk for pk, how, _ in slots if how == "random"] == [one.pk for one in made[:4]]
    assert [pk for pk, how, _ in slots if how == "flips"] == [one.pk for one in made[4:10]]
    assert {probability for _, how, probability in slots if how == "random"} == {4 / 20}
    assert Counter(how for _, how, _ in slots[:5])["random"] not in (0, 4)


def test_the_same_seed_makes_the_same_queue() -> None:
    def ways() -> list[str]:
        evaluation = make_evaluation()
        for comparison in comparisons(evaluation, 12):
            flipping(comparison)
        made = make_queue(
            evaluation, name="a", strategy=SelectionMethod.FLIPS, size=8, random_percent=50, seed=7, user=None
        )
        return [how for _, how, _ in slots_of(made)]

    assert ways() == ways()


def test_judges_disagree_where_what_they_say_over_both_orders_differs(evaluation: Evaluation) -> None:
    """The shown judge and an LLM: A and A agree, A and B do not."""
    made = comparisons(evaluation, 3)
    change_evaluation(evaluation, {"shown_judge": make_judge_rater(evaluation).judge}, user=None)
    other = make_judge_rater(evaluation, "other").judge
    assert other is not None
    scorer = make_scoring_judge(evaluation).judge
    assert scorer is not None
    type(other).objects.filter(pk=other.pk).update(kind="llm", endpoint=scorer.endpoint)
    for comparison, says in zip(made, (ALL_A, ALL_B, ALL_A), strict=True):
        make_judge_verdicts(comparison, as_stored=ALL_A, swapped=ALL_A)
        make_judge_verdicts(comparison, judge="other", as_stored=says, swapped=says)
    found = make_queue(
        evaluation, name="judges", strategy=SelectionMethod.JUDGES_DISAGREE, size=9, random_percent=0, user=None
    )
    assert [pk for pk, _, _ in slots_of(found)] == [made[1].pk]


def test_people_disagree_where_a_label_is_split_and_unsettled(evaluation: Evaluation) -> None:
    made = comparisons(evaluation, 4)
    depth = get_or_make_aspect(evaluation, "depth")
    for comparison, source, unanimous in (
        (made[0], "majority", True),
        (made[1], "majority", False),
        (made[2], "adjudicated", False),
    ):
        Label.objects.create(
            comparison=comparison, aspect=depth, choice="A", source=source, votes=3, unanimous=unanimous
        )
    found = make_queue(
        evaluation, name="people", strategy=SelectionMethod.PEOPLE_DISAGREE, size=9, random_percent=0, user=None
    )
    assert [pk for pk, _, _ in slots_of(found)] == [made[1].pk]


def test_least_confident_is_what_the_judge_gave_the_evenest_chances(evaluation: Evaluation) -> None:
    """Weighted .9 and .7 → .3 from a half; .6 and .4 → 0; .1 in both orders → .4."""
    made = comparisons(evaluation, 3)
    for comparison, weights in zip(made, ((0.9, 0.7), (0.6, 0.4), (0.1, 0.1)), strict=True):
        make_judge_verdicts(comparison, as_stored={"depth": "A"}, swapped={"depth": "A"})
        said = Verdict.objects.filter(comparison=comparison).order_by("pk")
        for verdict, weighted in zip(said, weights, strict=True):
            Verdict.objects.filter(pk=verdict.pk).update(weighted=weighted)
    change_evaluation(evaluation, {"shown_judge": make_judge_rater(evaluation).judge}, user=None)
    found = make_queue(
        evaluation, name="unsure", strategy=SelectionMethod.LEAST_CONFIDENT, size=2, random_percent=0, user=None
    )
    assert [pk for pk, _, _ in slots_of(found)] == [made[1].pk, made[0].pk]


def test_strata_are_drawn_equally_as_far_as_each_goes(evaluation: Evaluation) -> None:
    """Six of coding, two of maths, four wanted and then four more: 2 + 2, then 4 + 0."""
    coding, maths = comparisons(evaluation, 6, category="coding"), comparisons(evaluation, 2, category="maths")
    first = make_queue(
        evaluation,
        name="first",
        strategy=SelectionMethod.STRATIFIED,
        strata=StratifyBy.CATEGORY,
        size=4,
        random_percent=0,
        user=None,
    )
    assert {(pk, probability) for pk, _, probability in slots_of(first)} == {
        *((one.pk, 2 / 6) for one in coding[:2]),
        *((one.pk, 1.0) for one in maths),
    }
    second = make_queue(
        evaluation,
        name="second",
        strategy=SelectionMethod.STRATIFIED,
        strata=StratifyBy.CATEGORY,
        size=4,
        random_percent=0,
        user=None,
    )
    assert {(pk, probability) for pk, _, probability in slots_of(second)} == {(one.pk, 1.0) for one in coding[2:]}


def test_pairs_of_candidates_are_strata_too(evaluation: Evaluation) -> None:
    one = make_comparison(evaluation, candidates=("alpha", "beta"))
    other = make_comparison(evaluation, candidates=("alpha", "gamma"))
    comparisons(evaluation, 3)
    made = make_queue(
        evaluation,
        name="pairs",
        strategy=SelectionMethod.STRATIFIED,
        strata=StratifyBy.CANDIDATE_PAIR,
        size=2,
        random_percent=0,
        user=None,
    )
    assert {(pk, probability) for pk, _, probability in slots_of(made)} == {(one.pk, 0.25), (other.pk, 1.0)}


def test_a_queue_wants_its_own_number_of_reviews_until_it_is_archived(owner: User, evaluation: Evaluation) -> None:
    made = comparisons(evaluation, 3)
    queue_of_two = by_random(evaluation, 1, reviews_wanted=2)
    others = [make_member(evaluation, Role.REVIEWER) for _ in range(2)]
    assert [save_next(one, evaluation).comparison_id for one in (owner, others[0])] == [made[0].pk] * 2
    assert take_next_comparison(others[1], evaluation) == made[1].pk
    archive_queue(queue_of_two, owner)
    assert set(QueueItem.objects.values_list("wanted", flat=True)) == {1}
    change_evaluation(evaluation, {"reviews_wanted": 3}, user=owner)
    assert save_next(others[1], evaluation).comparison_id == made[1].pk
    assert take_next_comparison(others[1], evaluation) == made[0].pk


def test_by_name_a_queue_is_split_evenly_and_met_by_nobody_else(owner: User, evaluation: Evaluation) -> None:
    made = comparisons(evaluation, 5)
    ann, ben = (make_member(evaluation, Role.REVIEWER, name) for name in ("ann", "ben"))
    by_random(evaluation, 4, audience=QueueAudience.SPLIT, people=[ann, ben])
    given = Assignment.objects.filter(state=AssignmentState.ASSIGNED)
    assert Counter(given.values_list("rater__name", flat=True)) == {"ann": 2, "ben": 2}
    assert take_next_comparison(owner, evaluation) == made[4].pk
    assert [save_next(ann, evaluation).comparison_id for _ in range(2)] == [made[0].pk, made[2].pk]
    assert take_next_comparison(ann, evaluation) is None


def test_by_name_with_as_many_reviews_as_people_everyone_gets_all(evaluation: Evaluation) -> None:
    comparisons(evaluation, 3)
    people = [make_member(evaluation, Role.REVIEWER) for _ in range(2)]
    by_random(evaluation, 3, audience=QueueAudience.SPLIT, people=people, reviews_wanted=2)
    assert set(QueueItem.objects.values_list("taken", "wanted")) == {(2, 2)}
    assert Assignment.objects.count() == 6


def test_archiving_gives_back_what_was_given_by_name_and_not_begun(owner: User, evaluation: Evaluation) -> None:
    made = comparisons(evaluation, 2)
    ann = make_member(evaluation, Role.REVIEWER)
    named = by_random(evaluation, 2, audience=QueueAudience.SPLIT, people=[ann])
    save_next(ann, evaluation)
    assert take_next_comparison(owner, evaluation) is None
    archive_queue(named, owner)
    assert take_next_comparison(owner, evaluation) == made[1].pk
    with pytest.raises(InputRefused, match="already archived"):
        archive_queue(named, owner)
    assert Event.objects.filter(verb="archived", object_type="queue").count() == 1


def test_deleting_a_queue_leaves_its_comparisons_and_what_was_opened_of_them(
    owner: User, evaluation: Evaluation
) -> None:
    made = comparisons(evaluation, 3)
    ann = make_member(evaluation, Role.REVIEWER)
    named = by_random(evaluation, 3, audience=QueueAudience.SPLIT, people=[ann], reviews_wanted=1)
    assert take_next_comparison(ann, evaluation) == made[0].pk
    assert take_next_comparison(owner, evaluation) is None
    delete_queue(named, owner)
    assert not Queue.objects.exists()
    assert_counters_are_right(evaluation)
    assert take_next_comparison(owner, evaluation) in {one.pk for one in made}
    review = save_first_choices(ann, made[0], choices=ALL_A, version=0)
    assert (review.selection_method, review.queue) == (SelectionMethod.RANDOM, None)
    assert_counters_are_right(evaluation)


def test_a_calibration_whose_result_was_seen_is_not_deleted(owner: User, evaluation: Evaluation) -> None:
    """Everyone who saw it knows its labels, also where they skipped every comparison."""
    calibration = by_random(evaluation, 1) if comparisons(evaluation, 1) else None
    assert calibration is not None
    QueueProgress.objects.create(
        rater=get_or_create_rater(owner, evaluation),
        rubric_version_id=calibration.rubric_version_id,
        queue=calibration,
        result_seen_at=calibration.created_at,
    )
    with pytest.raises(InputRefused, match="Archive it instead"):
        delete_queue(calibration, owner)


def test_what_is_given_by_name_comes_before_the_default_queue_and_counts_as_selected_by_hand(
    owner: User, evaluation: Evaluation
) -> None:
    made = comparisons(evaluation, 3)
    assert assign_comparisons(evaluation, [made[2]], [owner], owner) == AssignmentCount(1, reviewed=0, waiting=0)
    assert assign_comparisons(evaluation, [made[2]], [owner], owner) == AssignmentCount(0, reviewed=0, waiting=1)
    review = save_next(owner, evaluation)
    assert (review.comparison_id, review.selection_method, review.probability) == (made[2].pk, "by_hand", None)
    assert Event.objects.filter(verb="assigned").count() == 2


def test_what_was_named_and_is_skipped_is_open_to_others(owner: User, evaluation: Evaluation) -> None:
    (only,) = comparisons(evaluation, 1)
    ann = make_member(evaluation, Role.REVIEWER)
    assign_comparisons(evaluation, [only], [ann], owner)
    assert take_next_comparison(owner, evaluation) is None
    skip_comparison(ann, only, reason="", version=0)
    assert take_next_comparison(owner, evaluation) == only.pk


def lapse(owner: User) -> None:
    held = Assignment.objects.filter(rater__user=owner, state=AssignmentState.RESERVED)
    held.update(reserved_until=timezone.now() - timedelta(seconds=1))
    release_expired_reservations(10)


def test_what_somebody_let_lapse_is_given_to_them_by_name_again(owner: User, evaluation: Evaluation) -> None:
    (only,) = comparisons(evaluation, 1)
    ann = make_member(evaluation, Role.REVIEWER)
    assert take_next_comparison(ann, evaluation) == only.pk
    lapse(ann)
    assert assign_comparisons(evaluation, [only], [ann], owner).number == 1
    assert [take_next_comparison(owner, evaluation), take_next_comparison(ann, evaluation)] == [None, only.pk]
    assert save_next(ann, evaluation).selection_method == SelectionMethod.RANDOM
    assert assign_comparisons(evaluation, [only], [ann], owner) == AssignmentCount(0, reviewed=1, waiting=0)
    assert_counters_are_right(evaluation)


def test_what_somebody_skipped_is_given_to_them_by_name_again(owner: User, evaluation: Evaluation) -> None:
    (only,) = comparisons(evaluation, 1)
    ann = make_member(evaluation, Role.REVIEWER)
    skipped = skip_comparison(ann, only, reason="", version=0)
    assert assign_comparisons(evaluation, [only], [ann], owner).number == 1
    assert [take_next_comparison(owner, evaluation), take_next_comparison(ann, evaluation)] == [None, only.pk]
    save_first_choices(ann, only, choices=ALL_A, version=skipped.version)
    assert_counters_are_right(evaluation)


@pytest.mark.parametrize("is_later", [False, True])
def test_a_queue_by_name_holds_what_its_people_let_lapse(owner: User, evaluation: Evaluation, is_later: bool) -> None:
    """It comes to them through the queue then, as it was selected for it."""
    (only,) = comparisons(evaluation, 1)
    ann = make_member(evaluation, Role.REVIEWER)
    assert take_next_comparison(ann, evaluation) == only.pk
    lapse(ann)
    QueueItem.objects.update(drawn=False)
    made = by_random(
        evaluation,
        1,
        audience=QueueAudience.EVERYONE if is_later else QueueAudience.SPLIT,
        people=[] if is_later else [ann],
    )
    if is_later:
        assert assign_queue_to_reviewers(made, [ann], owner) == 1
    assert [take_next_comparison(owner, evaluation), take_next_comparison(ann, evaluation)] == [None, only.pk]
    assert save_next(ann, evaluation).queue == made
    assert_counters_are_right(evaluation)


def test_the_queue_is_filled_before_anything_is_locked(
    evaluation: Evaluation, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may take many short transactions: inside another they would be one long one."""
    depths = []

    def ready(of: Evaluation) -> None:
        depths.append(len(connection.savepoint_ids))
        fill_default_queue(of)

    for module in (queues_services, calibration):
        monkeypatch.setattr(module, "ensure_queue_is_filled", ready)
    (only,) = comparisons(evaluation, 1)
    make_imported_votes(only, "gold", ALL_A, kind="gold")
    outside = len(connection.savepoint_ids)
    assign_comparisons(evaluation, [only], [owner], owner)
    by_random(evaluation, 1, reviews_wanted=2)
    create_calibration(evaluation, name="Calibration", size=1, user=None)
    assert depths == [outside] * 3


def test_progress_counts_no_more_reviews_than_a_queue_wants(owner: User, evaluation: Evaluation) -> None:
    comparisons(evaluation, 3)
    by_random(evaluation, 2)
    save_next(owner, evaluation)
    (progress,) = get_queue_statuses(Queue.objects.all()).values()
    assert (progress.comparisons, progress.reviews, progress.wanted) == (2, 1, 2)


def test_a_preview_says_what_would_be_selected_and_makes_nothing(evaluation: Evaluation) -> None:
    made = comparisons(evaluation, 6)
    for comparison in made[2:]:
        flipping(comparison)
    seen = preview_queue(evaluation, QueuePlan(strategy=SelectionMethod.FLIPS, size=4, random_percent=50))
    assert (seen.matching, seen.at_random, seen.by_strategy) == (4, 2, 2)
    assert not Queue.objects.exists()
    assert not drawn(evaluation)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"size": 0}, "a limit of 1 or more"),
        ({"name": " "}, "a name of 1 to 120"),
        ({"name": "taken"}, "already"),
        ({"random_percent": 101}, "from 0 to 100%"),
        ({"reviews_wanted": 0}, "1 to 100 reviews"),
        ({"strategy": SelectionMethod.STRATIFIED}, "Choose groups"),
        ({"strategy": SelectionMethod.BY_HAND}, "not a strategy"),
        ({"strategy": SelectionMethod.FLIPS, "random_percent": 0}, "No matching comparisons"),
        ({"audience": QueueAudience.SPLIT}, "at least one reviewer"),
    ],
)
def test_a_queue_that_makes_no_sense_is_refused_in_words(
    evaluation: Evaluation, asked: dict[str, object], said: str
) -> None:
    comparisons(evaluation, 2)
    by_random(evaluation, 1, "taken")
    usual: dict[str, Any] = {"name": "new", "size": 1, "strategy": SelectionMethod.RANDOM, "user": None}
    with pytest.raises(InputRefused, match=said):
        make_queue(evaluation, **(usual | asked))
    assert Queue.objects.count() == 1


def test_nothing_is_made_in_an_archived_evaluation(owner: User, evaluation: Evaluation) -> None:
    comparisons(evaluation, 1)
    move_to_archive(evaluation, user=owner)
    with pytest.raises(InputRefused, match="archived"):
        by_random(evaluation, 1)


def test_categories_of_queries_are_read_as_they_are_now(evaluation: Evaluation) -> None:
    made = comparisons(evaluation, 2, category="coding")
    Query.objects.filter(pk=made[0].query_id).update(category="maths")
    seen = preview_queue(
        evaluation, QueuePlan(strategy=SelectionMethod.STRATIFIED, strata=StratifyBy.CATEGORY, size=2, random_percent=0)
    )
    assert seen.by_strategy == 2
