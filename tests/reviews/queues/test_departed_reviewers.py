"""What people who left were given is open to others again."""

from collections.abc import Callable

import pytest

from evaluations.domain.reviews import AssignmentState, QueueAudience, SelectionMethod
from evaluations.domain.roles import Role
from evaluations.members.services import disable_account, remove_member, set_role
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.queues import Assignment
from evaluations.models.users import Membership, User
from evaluations.reviews.queues.services import assign_comparisons, release_departed_reservations
from evaluations.reviews.services import save_first_choices
from evaluations.tasks import sweep
from tests.factories.evaluations import make_comparison, make_evaluation, make_member
from tests.factories.queue_state import assert_counters_are_right, take_next_comparison
from tests.factories.queues import make_queue
from tests.factories.verdicts import ALL_A

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(evaluation: Evaluation) -> User:
    return make_member(evaluation, Role.REVIEWER, "ann")


def removed(ann: User, evaluation: Evaluation, owner: User) -> None:
    remove_member(Membership.objects.get(user=ann), by=owner)


def made_viewer(ann: User, evaluation: Evaluation, owner: User) -> None:
    set_role(evaluation, ann, Role.VIEWER, by=owner)


def disabled(ann: User, evaluation: Evaluation, owner: User) -> None:
    disable_account(ann, by=owner)


@pytest.mark.parametrize("leaves", [removed, made_viewer, disabled])
def test_what_was_given_to_somebody_who_left_comes_to_those_who_have_passed_it(
    ann: User, owner: User, evaluation: Evaluation, leaves: Callable[[User, Evaluation, User], None]
) -> None:
    first, second, third, fourth = (make_comparison(evaluation) for _ in range(4))
    assign_comparisons(evaluation, [first, second], [ann], owner)
    save_first_choices(ann, first, choices=ALL_A, version=0)
    assert take_next_comparison(owner, evaluation) == third.pk
    save_first_choices(owner, third, choices=ALL_A, version=0)
    leaves(ann, evaluation, owner)
    assert take_next_comparison(owner, evaluation) == second.pk
    assert set(Assignment.objects.filter(rater__user=ann).values_list("state", flat=True)) == {"done", "expired"}
    assert Event.objects.get(verb="put back").after == {"person": "ann", "comparisons": 1}
    assert fourth.pk != second.pk
    assert_counters_are_right(evaluation)


def test_the_sweep_puts_back_what_was_left_of_somebody_who_is_gone(
    ann: User, owner: User, evaluation: Evaluation
) -> None:
    assign_comparisons(evaluation, [make_comparison(evaluation)], [ann], owner)
    Membership.objects.filter(user=ann).delete()
    sweep()
    assert Event.objects.get(verb="put back").after == {"person": "ann", "comparisons": 1}
    assert_counters_are_right(evaluation)


def test_who_comes_back_meets_what_is_still_open(ann: User, owner: User, evaluation: Evaluation) -> None:
    first, second = (make_comparison(evaluation) for _ in range(2))
    make_queue(
        evaluation,
        name="Ann's",
        strategy=SelectionMethod.RANDOM,
        size=2,
        audience=QueueAudience.SPLIT,
        people=[ann],
        user=owner,
    )
    assert take_next_comparison(ann, evaluation) == first.pk
    removed(ann, evaluation, owner)
    assert Event.objects.get(verb="put back").after == {"person": "ann", "comparisons": 2}
    save_first_choices(
        owner, Comparison.objects.get(pk=take_next_comparison(owner, evaluation) or 0), choices=ALL_A, version=0
    )
    set_role(evaluation, ann, Role.REVIEWER, by=owner)
    assert take_next_comparison(ann, evaluation) == second.pk
    assert_counters_are_right(evaluation)


def test_in_other_evaluations_and_of_other_people_nothing_is_put_back(
    ann: User, owner: User, evaluation: Evaluation
) -> None:
    other = make_evaluation(owner)
    set_role(other, ann, Role.REVIEWER, by=owner)
    for here in (evaluation, other):
        assign_comparisons(here, [make_comparison(here)], [ann, owner], owner)
    removed_here = Membership.objects.get(user=ann, evaluation=evaluation)
    remove_member(removed_here, by=owner)
    left = Assignment.objects.filter(state=AssignmentState.ASSIGNED).values_list("rater__name", "rater__evaluation")
    assert set(left) == {("olive", evaluation.pk), ("olive", other.pk), ("ann", other.pk)}


def test_of_many_no_more_than_the_limit_and_a_step_are_put_back(
    ann: User, owner: User, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluations.reviews.queues.services.SHORT_TRANSACTION_ROWS", 2)
    assign_comparisons(evaluation, [make_comparison(evaluation) for _ in range(5)], [ann], owner)
    Membership.objects.filter(user=ann).delete()
    assert [release_departed_reservations(3), release_departed_reservations(3), release_departed_reservations(3)] == [
        4,
        1,
        0,
    ]
    assert_counters_are_right(evaluation)
