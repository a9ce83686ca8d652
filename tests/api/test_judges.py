"""What a judge is sent, as a program reads it."""

import pytest

from evaluations.domain import Role
from evaluations.models import Evaluation
from tests.asking import Asking, token_for
from tests.bouts import NOWHERE
from tests.judges import make_judge
from tests.making import make_comparison, make_member

pytestmark = pytest.mark.django_db


def test_a_reviewers_program_is_told_no_text_of_a_comparison_in_its_stored_order(
    asking: Asking, evaluation: Evaluation
) -> None:
    comparison = make_comparison(evaluation, query="What is the capital of France?")
    at = f"/evaluations/study/judges/{make_judge(evaluation, NOWHERE).pk}/prompt"
    assert asking.get(at).json()["subject"] == comparison.pk
    assert "capital of France" in asking.get(at).content.decode()

    reviewer = Asking(token_for(make_member(evaluation, Role.REVIEWER)))
    told = reviewer.get(f"{at}?shown=swapped")
    assert (told.status_code, told.json()["subject"], told.json()["shown"]) == (200, None, "swapped")
    assert "At nine." in told.content.decode()
    assert "France" not in told.content.decode()
    assert reviewer.get(f"{at}?subject={comparison.pk}").status_code == 403
