import pytest
from django.core.management import CommandError, call_command

from evaluations.domain.choices import Choice
from evaluations.domain.roles import Role
from evaluations.domain.rubrics import RubricKind
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import Membership
from tests.factories.evaluations import make_evaluation, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def test_it_makes_an_evaluation_with_the_six_aspects_and_its_owner() -> None:
    make_user("ada")
    call_command("create_evaluation", "study", "--name", "A study", "--owner", "ada")
    evaluation = Evaluation.objects.get(slug="study")
    assert evaluation.review_rubric is not None
    assert len(evaluation.review_rubric.spec().aspects) == 6
    assert Membership.objects.get(evaluation=evaluation).role == Role.OWNER
    assert evaluation.reviews_wanted == 2  # so that reviewers can be compared with each other


def test_it_begins_with_another_built_in_rubric_where_one_is_named() -> None:
    call_command("create_evaluation", "study", "--name", "A study", "--rubric", "qa-pairwise")
    version = Evaluation.objects.get(slug="study").review_rubric
    assert version is not None
    assert [aspect.label(Choice.TIE) for aspect in version.spec().aspects] == ["SAME"]


def test_people_can_review_by_a_rubric_that_scores_single_responses() -> None:
    call_command("create_evaluation", "study", "--name", "A study", "--rubric", "summary-rating")
    version = Evaluation.objects.get(slug="study").review_rubric
    assert version is not None
    assert version.rubric.kind == RubricKind.POINTWISE


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["Two Words", "--name", "x"], "lowercase letters"),
        (["", "--name", "x"], "lowercase letters"),
        (["taken", "--name", "x"], "“taken” is taken"),
        (["study", "--name", " "], "name"),
        (["study", "--name", "x" * 201], "name"),
        (["s" * 81, "--name", "x"], "slug"),
        (["study", "--name", "x", "--rubric", "seven-aspect"], "six-aspect"),
        (["study", "--name", "x", "--owner", "nobody"], "sign_in_link nobody --create"),
    ],
)
def test_what_it_cannot_take_is_one_clear_line_and_makes_nothing(arguments: list[str], said: str) -> None:
    make_evaluation(slug="taken")
    with pytest.raises(CommandError, match=said) as refused:
        call_command("create_evaluation", *arguments)
    assert "\n" not in str(refused.value)
    assert Evaluation.objects.count() == 1
