"""What people who left were given is open to others again."""

from collections.abc import Callable

import pytest

from evaluations import tasks
from evaluations.domain import AssignmentState, PickedBy, Role
from evaluations.models import Assignment, Comparison, Evaluation, Event, Membership, User
from evaluations.services.preparing.inviting import disable_account
from evaluations.services.preparing.preparing import remove_member, set_role
from evaluations.services.reviewing.assigning import assign, make_round
from evaluations.services.reviewing.releasing import release
from evaluations.services.reviewing.reviewing import save_first
from tests.making import make_comparison, make_evaluation, make_member, make_user
from tests.queue import assert_counters_are_right, turn
from tests.saying import ALL_A

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> User:
    return make_user("olive")


@pytest.fixture
def evaluation(owner: User) -> Evaluation:
    return make_evaluation(owner)


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
    assign(evaluation, [first, second], [ann], owner)
    save_first(ann, first, choices=ALL_A, version=0)
    assert turn(owner, evaluation) == third.pk
    save_first(owner, third, choices=ALL_A, version=0)
    leaves(ann, evaluation, owner)
    tasks.sweep()
    assert turn(owner, evaluation) == second.pk
    assert set(Assignment.objects.filter(rater__user=ann).values_list("state", flat=True)) == {"done", "lapsed"}
    assert Event.objects.get(verb="put back").after == {"person": "ann", "comparisons": 1}
    assert fourth.pk != second.pk
    assert_counters_are_right(evaluation)


def test_who_comes_back_meets_what_is_still_open(ann: User, owner: User, evaluation: Evaluation) -> None:
    first, second = (make_comparison(evaluation) for _ in range(2))
    make_round(evaluation, name="Ann's", strategy=PickedBy.RANDOM, size=2, by_name=True, people=[ann], user=owner)
    assert turn(ann, evaluation) == first.pk
    removed(ann, evaluation, owner)
    assert release(10, of=ann, by=owner) == 2
    save_first(owner, Comparison.objects.get(pk=turn(owner, evaluation) or 0), choices=ALL_A, version=0)
    set_role(evaluation, ann, Role.REVIEWER, by=owner)
    assert turn(ann, evaluation) == second.pk
    assert_counters_are_right(evaluation)


def test_in_other_evaluations_and_of_other_people_nothing_is_put_back(
    ann: User, owner: User, evaluation: Evaluation
) -> None:
    other = make_evaluation(owner)
    set_role(other, ann, Role.REVIEWER, by=owner)
    for here in (evaluation, other):
        assign(here, [make_comparison(here)], [ann, owner], owner)
    removed_here = Membership.objects.get(user=ann, evaluation=evaluation)
    remove_member(removed_here, by=owner)
    assert release(10) == 1
    left = Assignment.objects.filter(state=AssignmentState.NAMED).values_list("rater__name", "rater__evaluation")
    assert set(left) == {("olive", evaluation.pk), ("olive", other.pk), ("ann", other.pk)}


def test_of_many_no_more_than_the_limit_and_a_step_are_put_back(
    ann: User, owner: User, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluations.services.reviewing.releasing.ROWS_AT_ONCE", 2)
    assign(evaluation, [make_comparison(evaluation) for _ in range(5)], [ann], owner)
    removed(ann, evaluation, owner)
    assert [release(3), release(3), release(3)] == [4, 1, 0]
    assert_counters_are_right(evaluation)
