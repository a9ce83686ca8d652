"""Calibration: which labels are known, how far a person is, and how their choices compare."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluations.domain.choices import Choice, Stage
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import QueueKind, ReviewState, SelectionMethod
from evaluations.domain.roles import Role
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricOrigin, RubricSpec
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.judges import Rater
from evaluations.models.queues import Queue, QueueItem
from evaluations.models.users import User
from evaluations.models.verdicts import Adjudication, Review, Score
from evaluations.reviews.queues.calibration import (
    create_calibration,
    find_comparisons_with_known_labels,
    find_unseen_calibration,
    get_calibration_progress,
    get_progress_in_calibration,
    record_calibration_result_seen,
)
from evaluations.reviews.queues.selectors import (
    get_calibration_result,
    get_calibration_results,
    get_default_queue_status,
    get_known_labels,
    get_open_calibrations,
    get_queue_statuses,
)
from evaluations.reviews.queues.services import archive_queue
from evaluations.reviews.services import save_first_choices, undo_last_step
from evaluations.rubrics.services import add_rubric
from evaluations.visibility import visible_comparisons
from tests.factories.evaluations import make_comparison, make_human, make_member, make_user
from tests.factories.queue_state import take_next_comparison
from tests.factories.queues import make_queue
from tests.factories.verdicts import (
    ALL_A,
    ALL_TIE,
    SIX_ASPECT_KEYS,
    get_or_make_aspect,
    make_imported_votes,
    make_review,
)

pytestmark = pytest.mark.django_db


def golden(evaluation: Evaluation, choice: Choice = Choice.A) -> Comparison:
    comparison = make_comparison(evaluation)
    make_imported_votes(comparison, "gold", dict.fromkeys(SIX_ASPECT_KEYS, choice), kind="gold")
    return comparison


def settle(comparison: Comparison, key: str, choice: Choice, user: User) -> None:
    aspect = get_or_make_aspect(comparison.evaluation, key)
    Adjudication.objects.create(comparison=comparison, aspect=aspect, user=user, choice=choice, reason="Read twice.")


def named(evaluation: Evaluation, *comparisons: Comparison) -> Queue:
    return create_calibration(
        evaluation, name=f"Queue {Queue.objects.count()}", comparisons=[one.pk for one in comparisons], user=None
    )


def skips(rater: Rater, comparison: Comparison) -> None:
    review = make_review(rater, comparison, {})
    Review.objects.filter(pk=review.pk).update(state=ReviewState.SKIPPED)


# ---- which labels are known


def test_gold_verdicts_and_adjudications_are_known_labels_and_votes_of_people_are_none(
    evaluation: Evaluation, owner: User
) -> None:
    gold, settled, voted = golden(evaluation), make_comparison(evaluation), make_comparison(evaluation)
    settle(settled, SIX_ASPECT_KEYS[0], Choice.B, owner)
    make_review(make_human(evaluation), voted, ALL_A)
    assert set(find_comparisons_with_known_labels(evaluation)) == {gold, settled}
    assert get_known_labels([settled.pk]) == {settled.pk: {SIX_ASPECT_KEYS[0]: "B"}}


def test_an_adjudication_outranks_gold_and_gold_that_contradicts_itself_is_not_known(
    evaluation: Evaluation, owner: User
) -> None:
    comparison = golden(evaluation)
    settle(comparison, SIX_ASPECT_KEYS[0], Choice.B, owner)
    make_imported_votes(comparison, "other gold", {SIX_ASPECT_KEYS[1]: Choice.TIE}, kind="gold")
    known = get_known_labels([comparison.pk])[comparison.pk]
    assert known == {SIX_ASPECT_KEYS[0]: "B", **dict.fromkeys(SIX_ASPECT_KEYS[2:], "A")}


def test_a_label_on_an_aspect_that_nobody_is_asked_about_is_of_no_use(evaluation: Evaluation) -> None:
    make_imported_votes(make_comparison(evaluation), "gold", {"elsewhere": Choice.A}, kind="gold")
    assert not find_comparisons_with_known_labels(evaluation).exists()


# ---- making a queue


def test_a_queue_drawn_by_the_same_seed_is_the_same_queue(evaluation: Evaluation, owner: User) -> None:
    for _ in range(9):
        golden(evaluation)
    one = create_calibration(evaluation, name="One", size=4, seed=7, user=owner)
    two = create_calibration(evaluation, name="Two", size=4, seed=7, user=owner)
    selected = [list(made.slots.order_by("position").values_list("item", flat=True)) for made in (one, two)]
    assert selected[0] == selected[1]
    assert len(set(selected[0])) == 4
    assert (one.kind, one.population) == (QueueKind.CALIBRATION, 9)
    assert set(one.slots.values_list("selection_method", "probability")) == {(SelectionMethod.CALIBRATION, None)}
    assert Event.objects.filter(object_type="queue", object_id=one.pk, user=owner, verb="created queue").exists()


def test_it_takes_no_place_in_the_queue(evaluation: Evaluation) -> None:
    named(evaluation, golden(evaluation))
    assert list(QueueItem.objects.values_list("taken", "drawn")) == [(0, False)]


def test_what_is_in_an_open_calibration_is_wanted_only_once_it_is_closed(evaluation: Evaluation, owner: User) -> None:
    """Four comparisons and a queue of two of them; one of these two is posed, and one that is in no queue."""
    free = make_comparison(evaluation)
    in_queue, other = golden(evaluation), golden(evaluation)
    make_comparison(evaluation)
    calibration = named(evaluation, in_queue, other)
    QueueItem.objects.exclude(comparison__in=(free, in_queue)).update(drawn=True)
    make_queue(evaluation, name="Two", strategy=SelectionMethod.RANDOM, size=2, reviews_wanted=2, user=None)
    while (pk := take_next_comparison(owner, evaluation)) is not None:
        save_first_choices(owner, Comparison.objects.get(pk=pk), choices=ALL_A, version=0)
    default_queue, (_, progress) = (
        get_default_queue_status(evaluation),
        get_queue_statuses(Queue.objects.order_by("pk")).values(),
    )
    assert (default_queue.reviews, default_queue.wanted, default_queue.calibrating) == (2, 3, 2)
    assert (progress.reviews, progress.wanted, progress.calibrating) == (1, 2, 1)
    archive_queue(calibration, owner)
    default_queue, (_, progress) = (
        get_default_queue_status(evaluation),
        get_queue_statuses(Queue.objects.order_by("pk")).values(),
    )
    assert (default_queue.reviews, default_queue.wanted, default_queue.calibrating) == (2, 6, 0)
    assert (progress.reviews, progress.wanted, progress.calibrating) == (1, 4, 0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": "", "size": 1}, "a name of 1 to 120"),
        ({"name": "New", "size": 0}, "from 1 to 2"),
        ({"name": "New", "size": 3}, "from 1 to 2"),
        ({"name": "Taken", "size": 1}, "already"),
        ({"name": "New", "comparisons": [0]}, "No gold label or resolution for 0"),
    ],
)
def test_what_cannot_be_made_is_refused_in_one_sentence(
    evaluation: Evaluation, given: dict[str, object], words: str
) -> None:
    golden(evaluation), golden(evaluation)
    create_calibration(evaluation, name="Taken", size=1, user=None)
    with pytest.raises(InputRefused, match=words):
        create_calibration(evaluation, user=None, **given)  # type: ignore[arg-type]
    assert Queue.objects.count() == 1


def test_where_nothing_is_known_it_says_how_labels_become_known(evaluation: Evaluation) -> None:
    make_comparison(evaluation)
    with pytest.raises(InputRefused, match="Import verdicts with rater kind “gold”"):
        create_calibration(evaluation, name="New", size=1, user=None)


# ---- how far a person is


def test_a_person_goes_through_it_and_is_offered_the_result_until_they_open_it(evaluation: Evaluation) -> None:
    user = make_member(evaluation, Role.REVIEWER)
    rater = Rater.objects.create(evaluation=evaluation, kind="human", name="me", user=user)
    one, two = golden(evaluation), golden(evaluation)
    made = named(evaluation, one, two)
    assert not get_progress_in_calibration(made, rater).is_finished
    make_review(rater, one, ALL_A)
    standing = get_calibration_progress(get_open_calibrations(evaluation), rater, two)
    assert standing
    assert (standing.done, standing.total, standing.position, standing.is_finished) == (1, 2, 2, False)
    assert find_unseen_calibration(get_open_calibrations(evaluation), rater) is None
    skips(rater, two)
    standing = get_calibration_progress(get_open_calibrations(evaluation), rater)
    assert standing
    assert standing.is_news
    assert find_unseen_calibration(get_open_calibrations(evaluation), rater) == made
    assert get_progress_in_calibration(made, rater).is_finished
    record_calibration_result_seen(made, user)
    record_calibration_result_seen(made, user)
    assert get_calibration_progress(get_open_calibrations(evaluation), rater) is None
    assert Event.objects.filter(verb="saw calibration result").count() == 1


def test_a_closed_queue_and_one_of_another_rubric_keep_nobody(evaluation: Evaluation) -> None:
    rater = make_human(evaluation)
    made = named(evaluation, golden(evaluation))
    Queue.objects.filter(pk=made.pk).update(closed_at=made.created_at)
    assert not get_open_calibrations(evaluation).exists()
    assert get_calibration_progress(get_open_calibrations(evaluation), rater) is None


def test_what_others_chose_stays_hidden_until_the_person_is_through(evaluation: Evaluation) -> None:
    user = make_member(evaluation, Role.REVIEWER)
    rater = Rater.objects.create(evaluation=evaluation, kind="human", name="me", user=user)
    one, two, other = golden(evaluation), golden(evaluation), make_comparison(evaluation)
    named(evaluation, one, two)
    for comparison in (one, other):
        make_review(rater, comparison, ALL_A)
    assert set(visible_comparisons(user, evaluation)) == {other}
    make_review(rater, two, ALL_A)
    assert set(visible_comparisons(user, evaluation)) == {one, two, other}


# ---- the result


@pytest.mark.parametrize("saw_result", [False, True])
def test_what_was_chosen_there_can_be_taken_back_until_the_result_was_seen(
    evaluation: Evaluation, saw_result: bool
) -> None:
    comparison, person = golden(evaluation), make_user()
    made = named(evaluation, comparison)
    review = save_first_choices(person, comparison, choices=ALL_TIE, version=0)
    if not saw_result:
        assert undo_last_step(person, review, version=1).state == ReviewState.DRAFT
        return
    record_calibration_result_seen(made, person)
    with pytest.raises(InputRefused, match="You have seen the result of this calibration"):
        undo_last_step(person, review, version=1)
    assert review.verdicts.count() == 2 * len(SIX_ASPECT_KEYS)


def test_what_was_reviewed_before_the_queue_was_made_keeps_its_first_choices_once_the_result_was_seen(
    evaluation: Evaluation,
) -> None:
    comparison, person = golden(evaluation), make_user()
    review = save_first_choices(person, comparison, choices=ALL_TIE, version=0)
    record_calibration_result_seen(named(evaluation, comparison), person)
    assert undo_last_step(person, review, version=1).state == ReviewState.FIRST
    assert set(review.verdicts.values_list("stage", "choice")) == {(Stage.FIRST, "tie")}


def test_first_choices_are_compared_with_what_is_known(evaluation: Evaluation) -> None:
    """Two of A, known A and B: on each aspect 1 of 2. The final change to B on the second is not looked at."""
    rater = make_human(evaluation)
    one, two = golden(evaluation, Choice.A), golden(evaluation, Choice.B)
    made = named(evaluation, two, one)
    make_review(rater, one, ALL_A)
    make_review(rater, two, ALL_A, final=dict.fromkeys(SIX_ASPECT_KEYS, Choice.B))
    found = get_calibration_result(made, rater)
    assert [(one.compared, one.agreed, one.share) for one in found.agreements] == [(2, 1, 0.5)] * 6
    assert found.overall
    assert (found.overall.compared, found.overall.agreed) == (12, 6)
    assert {(one.comparison, one.chosen, one.known) for one in found.differences} == {(two, "A", "B")}


def test_what_was_skipped_and_what_has_no_known_label_is_not_counted(evaluation: Evaluation, owner: User) -> None:
    rater = make_human(evaluation)
    skipped, settled = golden(evaluation), make_comparison(evaluation)
    settle(settled, SIX_ASPECT_KEYS[0], Choice.TIE, owner)
    made = named(evaluation, skipped, settled)
    make_review(rater, settled, ALL_TIE)
    skips(rater, skipped)
    found = get_calibration_result(made, rater)
    assert [one.compared for one in found.agreements] == [1, 0, 0, 0, 0, 0]
    assert found.agreements[1].share is None
    assert (found.skipped, found.differences) == (1, ())


def test_choices_derived_from_scores_are_compared_too(evaluation: Evaluation) -> None:
    """4 and 3 by a margin of 1 is a tie; the known label is A."""
    asked = AspectSpec("quality", "Quality", "How good it is.", scale_min=1, scale_max=5, scale_step=1, tie_margin=1)
    spec = RubricSpec(RubricKind.POINTWISE, "Rate.", (asked,), ("quality",))
    version = add_rubric(evaluation, name="scale", spec=spec, origin=RubricOrigin.OWN, user=None)
    Evaluation.objects.update(review_rubric=version)
    evaluation.refresh_from_db()
    comparison, rater = make_comparison(evaluation), make_human(evaluation)
    make_imported_votes(comparison, "gold", {"quality": Choice.A}, kind="gold")
    made = named(evaluation, comparison)
    review = make_review(rater, comparison, {})
    for side, value in ((comparison.response_a, 4), (comparison.response_b, 3)):
        aspect = get_or_make_aspect(evaluation, "quality")
        Score.objects.create(rater=rater, response=side, aspect=aspect, value=value, review=review, stage=Stage.FIRST)
    (difference,) = get_calibration_result(made, rater).differences
    assert (difference.chosen, difference.known) == ("tie", "A")


def test_results_of_many_cost_as_many_queries_as_of_one(evaluation: Evaluation) -> None:
    comparison = golden(evaluation)
    made = named(evaluation, comparison)
    raters = [make_human(evaluation) for _ in range(5)]
    for rater in raters:
        make_review(rater, comparison, ALL_A)

    def queries(some: list[Rater]) -> int:
        with CaptureQueriesContext(
            connection,
        ) as context:
            get_calibration_results(made, some)
        return len(context)

    assert queries(raters) == queries(raters[:1])
