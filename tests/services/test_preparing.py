"""Setting up a study: what the services refuse, and what they leave in the record."""

from dataclasses import replace

import pytest

from evaluations.domain import AspectSpec, InputRefused, Reveal, Role
from evaluations.judge.builtin import SIX_ASPECT
from evaluations.models import Aspect, Evaluation, Event, Rubric
from evaluations.services.preparing.preparing import (
    archive,
    bring_back,
    change_evaluation,
    create_evaluation,
    next_version,
    remove_member,
    set_role,
)
from tests.making import make_evaluation, make_user

pytestmark = pytest.mark.django_db

TONE = AspectSpec("tone", "Tone", "Whether it is friendly.")


def six_aspect(evaluation: Evaluation) -> Rubric:
    return Rubric.objects.get(evaluation=evaluation, name="six-aspect")


def newest_event(evaluation: Evaluation) -> Event:
    return Event.objects.filter(evaluation=evaluation).latest("pk")


def test_a_new_evaluation_begins_with_the_six_aspects_and_its_owner() -> None:
    owner = make_user("ada")
    evaluation = create_evaluation(slug="first", name="First", owner=owner)
    assert evaluation.review_rubric is not None
    assert [aspect.name for aspect in evaluation.review_rubric.spec().aspects] == [
        "Helpfulness",
        "Factuality",
        "Clarity",
        "Depth",
        "Engagement",
        "Safety",
    ]
    assert evaluation.memberships.get().role == Role.OWNER


@pytest.mark.parametrize("slug", ["", "Two Words", "späth", "a" * 81])
def test_an_address_that_is_none_is_refused(slug: str) -> None:
    with pytest.raises(InputRefused):
        create_evaluation(slug=slug, name="Name", owner=None)
    assert not Evaluation.objects.exists()


def test_an_address_is_given_once() -> None:
    make_evaluation(slug="taken")
    with pytest.raises(InputRefused, match="already"):
        create_evaluation(slug="taken", name="Other", owner=None)


def test_an_edit_makes_the_next_version_and_leaves_the_one_before_as_it_was() -> None:
    rubric = six_aspect(make_evaluation())
    second = next_version(rubric, replace(SIX_ASPECT, instructions="Be brief."), user=None)
    assert second.number == 2
    first = rubric.versions.get(number=1)
    assert first.spec() == SIX_ASPECT
    assert second.spec() == replace(SIX_ASPECT, instructions="Be brief.")


def test_a_version_without_a_change_is_refused() -> None:
    rubric = six_aspect(make_evaluation())
    with pytest.raises(InputRefused, match="Nothing was changed"):
        next_version(rubric, SIX_ASPECT, user=None)


def test_a_version_shares_the_aspects_that_are_known_and_adds_the_others() -> None:
    evaluation = make_evaluation()
    spec = replace(SIX_ASPECT, aspects=(SIX_ASPECT.aspects[0], TONE), output_order=("tone", "helpfulness"))
    version = next_version(six_aspect(evaluation), spec, user=None)
    assert version.spec().output_order == ("tone", "helpfulness")
    assert Aspect.objects.filter(evaluation=evaluation).count() == 7


def test_a_version_cannot_rename_an_aspect() -> None:
    renamed = (replace(SIX_ASPECT.aspects[0], name="Usefulness"), *SIX_ASPECT.aspects[1:])
    with pytest.raises(InputRefused, match="“helpfulness” is called “Helpfulness”"):
        next_version(six_aspect(make_evaluation()), replace(SIX_ASPECT, aspects=renamed), user=None)


def test_a_version_that_no_judge_could_be_asked_by_is_refused() -> None:
    pasted = replace(SIX_ASPECT, instructions="Compare {one} and {two}.", placeholders={"{one}": "response_a"})
    with pytest.raises(InputRefused, match=r"\{two\}"):
        next_version(six_aspect(make_evaluation()), pasted, user=None)


def test_people_are_asked_by_the_new_version_only_where_that_was_wanted() -> None:
    evaluation = make_evaluation()
    rubric = six_aspect(evaluation)
    next_version(rubric, replace(SIX_ASPECT, instructions="Two."), user=None)
    evaluation.refresh_from_db()
    assert evaluation.review_rubric is not None
    assert evaluation.review_rubric.number == 1
    next_version(rubric, replace(SIX_ASPECT, instructions="Three."), user=None, for_reviews=True)
    evaluation.refresh_from_db()
    assert evaluation.review_rubric.number == 3


def test_a_change_is_recorded_with_what_was_before() -> None:
    user = make_user()
    evaluation = make_evaluation(user)
    change_evaluation(evaluation, {"name": "New", "reveal": Reveal.NEVER.value, "description": ""}, user=user)
    event = newest_event(evaluation)
    assert event.user == user
    assert event.before == {"name": f"Study {evaluation.slug}", "reveal": "blind"}
    assert event.after == {"name": "New", "reveal": "never"}


def test_what_stays_the_same_leaves_no_trace() -> None:
    evaluation = make_evaluation()
    before = newest_event(evaluation)
    change_evaluation(evaluation, {"name": evaluation.name, "review_rubric": evaluation.review_rubric}, user=None)
    assert newest_event(evaluation) == before


def test_a_row_is_recorded_by_name_and_number() -> None:
    evaluation = make_evaluation()
    old = evaluation.review_rubric
    assert old is not None
    version = next_version(
        six_aspect(evaluation), replace(SIX_ASPECT, instructions="Two."), user=None, for_reviews=True
    )
    event = newest_event(evaluation)
    assert event.before == {"review_rubric": f"six-aspect 1 ({old.pk})"}
    assert event.after == {"review_rubric": f"six-aspect 2 ({version.pk})"}


def test_archiving_twice_keeps_the_first_time_and_bringing_back_undoes_it() -> None:
    evaluation = make_evaluation()
    first = archive(evaluation, user=None).archived_at
    assert first is not None
    assert archive(evaluation, user=None).archived_at == first
    assert Evaluation.objects.archived().get() == evaluation
    bring_back(evaluation, user=None)
    assert Evaluation.objects.current().get() == evaluation


def test_the_last_owner_stays_one() -> None:
    owner = make_user()
    evaluation = make_evaluation(owner)
    with pytest.raises(InputRefused, match="needs an owner"):
        set_role(evaluation, owner, Role.VIEWER, by=owner)
    with pytest.raises(InputRefused, match="needs an owner"):
        remove_member(evaluation.memberships.get(), by=owner)


def test_a_role_is_recorded_with_the_name_of_the_person() -> None:
    evaluation = make_evaluation()
    membership = set_role(evaluation, make_user("grace"), Role.REVIEWER, by=None)
    assert newest_event(evaluation).after == {"person": "grace", "role": "reviewer"}
    remove_member(membership, by=None)
    assert newest_event(evaluation).before == {"person": "grace", "role": "reviewer"}
