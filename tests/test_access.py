"""Who may do what: the whole table, written out a second time."""

import pytest
from django.core.exceptions import PermissionDenied
from django.http import Http404

from evaluations.access import Action, get_role, is_allowed, require_evaluation
from evaluations.domain.reviews import Reveal, ReviewState
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.verdicts import Disclosure, Review
from evaluations.visibility import (
    can_see_judges,
    can_see_verdicts,
    has_seen_verdicts,
    list_people_who_can_see,
    visible_comparisons,
    visible_comparisons_everywhere,
)
from tests.factories.evaluations import make_comparison, make_evaluation, make_member, make_user
from tests.factories.verdicts import ALL_A, make_review

pytestmark = pytest.mark.django_db

#                look, review, see all, discuss, adjudicate, tag, export, manage, own, back up
TABLE = {
    Role.OWNER: (True, True, True, True, True, True, True, True, True, True),
    Role.MANAGER: (True, True, True, True, True, True, True, True, False, False),
    Role.ADJUDICATOR: (True, True, True, True, True, True, True, False, False, False),
    Role.REVIEWER: (True, True, False, True, False, False, False, False, False, False),
    Role.VIEWER: (True, False, True, False, False, False, True, False, False, False),
    None: (False, False, False, False, False, False, False, False, False, False),
}
CASES = [(role, action, may) for role, row in TABLE.items() for action, may in zip(Action, row, strict=True)]


def test_the_table_has_every_role() -> None:
    assert set(TABLE) == {*Role, None}


@pytest.mark.parametrize(("role", "action", "may"), CASES)
def test_a_role_may_do_what_the_table_says(
    evaluation: Evaluation, role: Role | None, action: Action, may: bool
) -> None:
    user = make_member(evaluation, role) if role else make_user()
    assert is_allowed(user, action, evaluation) is may
    if may:
        assert require_evaluation(user, "study", action) == evaluation
    else:
        with pytest.raises(PermissionDenied if role else Http404):
            require_evaluation(user, "study", action)


def test_a_role_in_one_evaluation_is_none_in_another(evaluation: Evaluation) -> None:
    assert get_role(make_member(make_evaluation(), Role.OWNER), evaluation) is None


def test_a_refusal_says_whom_to_ask(evaluation: Evaluation) -> None:
    with pytest.raises(PermissionDenied, match="Ask an owner of “Study study”"):
        require_evaluation(make_member(evaluation, Role.VIEWER), "study", Action.MANAGE)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("state", [None, *ReviewState])
def test_a_comparison_is_open_to_whoever_sees_all_or_has_saved_it(
    evaluation: Evaluation, role: Role, state: ReviewState | None
) -> None:
    user = make_member(evaluation, role)
    comparison, other = make_comparison(evaluation), make_comparison(evaluation)
    rater = Rater.objects.create(evaluation=evaluation, kind="human", name="me", user=user)
    if state is not None:
        make_review(rater, comparison, ALL_A)
        Review.objects.update(state=state)
    saved = state in (ReviewState.FIRST, ReviewState.FINAL)
    assert can_see_verdicts(user, comparison) is (saved or role != Role.REVIEWER)
    assert can_see_verdicts(user, other) is (role != Role.REVIEWER)
    assert (user in list_people_who_can_see(comparison)) is (saved or role != Role.REVIEWER)
    assert (user in list_people_who_can_see(other)) is (role != Role.REVIEWER)
    everywhere = set(visible_comparisons_everywhere(user))
    assert everywhere == set(visible_comparisons(user, evaluation))


def test_who_takes_no_part_any_more_sees_nothing_of_what_they_saved(evaluation: Evaluation) -> None:
    gone, comparison = make_user(), make_comparison(evaluation)
    rater = Rater.objects.create(evaluation=evaluation, kind="human", name="gone", user=gone)
    make_review(rater, comparison, ALL_A)
    assert not visible_comparisons_everywhere(gone).exists()
    assert gone not in list_people_who_can_see(comparison)


def test_what_someone_else_saved_opens_nothing(evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation)
    other = Rater.objects.create(
        evaluation=evaluation, kind="human", name="other", user=make_member(evaluation, Role.REVIEWER)
    )
    make_review(other, comparison, ALL_A)
    assert not can_see_verdicts(make_member(evaluation, Role.REVIEWER), comparison)


def test_no_comparison_of_another_evaluation_is_open(evaluation: Evaluation) -> None:
    make_comparison(make_evaluation())
    assert not visible_comparisons(make_member(evaluation, Role.OWNER), evaluation).exists()


@pytest.mark.parametrize("reveal", list(Reveal))
@pytest.mark.parametrize("role", list(Role))
def test_judges_are_hidden_from_reviewers_where_they_are_never_shown(
    evaluation: Evaluation, role: Role, reveal: Reveal
) -> None:
    change_evaluation(evaluation, {"reveal": reveal}, user=None)
    hidden = role == Role.REVIEWER and reveal == Reveal.NEVER
    assert can_see_judges(make_member(evaluation, role), evaluation) is not hidden


@pytest.mark.parametrize(("shown", "seen"), [("it", True), ("another", False), ("all", True), ("elsewhere", False)])
def test_who_looked_or_downloaded_has_seen(evaluation: Evaluation, shown: str, seen: bool) -> None:
    user, comparison = make_member(evaluation, Role.OWNER), make_comparison(evaluation)
    of = {"it": comparison, "another": make_comparison(evaluation), "all": None, "elsewhere": None}
    where = make_evaluation() if shown == "elsewhere" else evaluation
    Disclosure.objects.create(user=user, evaluation=where, comparison=of[shown])
    assert has_seen_verdicts(user, comparison) is seen
    assert not has_seen_verdicts(make_member(evaluation, Role.OWNER), comparison)
