"""Numbers in a body that belong to another evaluation: refused, and nothing of it is told or changed."""

from typing import Any

import pytest

from evaluations.models.evaluations import Event
from evaluations.models.users import ApiToken, Membership
from tests.api.test_access import FIRST_USE
from tests.factories.full_evaluation import FullEvaluation, every_row, make_full_evaluation
from tests.helpers.api_client import ApiClient, token_for

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

NUMBER, OTHER_NUMBER = 770_100, 880_200
AT = f"/evaluations/slug-{NUMBER}"
# What is sent in the one evaluation with numbers of rows of the other.
SENT: dict[str, tuple[str, str, dict[str, Any]]] = {
    "assign_to_reviewers": ("POST", f"{AT}/comparisons/assign", {"comparisons": [OTHER_NUMBER], "reviewers": ["me"]}),
    "assign_to_people": ("POST", f"{AT}/comparisons/assign", {"comparisons": [NUMBER], "reviewers": ["them"]}),
    "put_tag": ("POST", f"{AT}/tags/put", {"name": "mine", "comparisons": [OTHER_NUMBER]}),
    "take_tag": ("POST", f"{AT}/tags/take", {"name": f"tag-{NUMBER}", "comparisons": [OTHER_NUMBER]}),
    "undo_tag": ("POST", f"{AT}/tags/undo", {"step": OTHER_NUMBER}),
    "review_rubric": ("PATCH", f"{AT}/settings", {"review_rubric": OTHER_NUMBER}),
    "shown_judge": ("PATCH", f"{AT}/settings", {"shown_judge": OTHER_NUMBER}),
    "make_judge": ("POST", f"{AT}/judges", {"rule": "longest", "version": OTHER_NUMBER}),
    "test_judge": ("POST", f"{AT}/judges/{NUMBER}/test", {"subject": OTHER_NUMBER}),
    "start_runs": ("POST", f"{AT}/runs", {"judges": [OTHER_NUMBER]}),
    "estimate_runs": ("POST", f"{AT}/runs/estimate", {"judges": [OTHER_NUMBER]}),
    "create_queue": ("POST", f"{AT}/queues", {"name": "mine", "who": "each", "reviewers": ["them"]}),
    "make_calibration": ("POST", f"{AT}/queues/calibration", {"comparisons": [OTHER_NUMBER]}),
    "assign_queue": ("POST", f"{AT}/queues/{NUMBER}/assign", {"reviewers": ["them"]}),
    "explain_choice": (
        *("POST", f"{AT}/disagreements/{NUMBER}/explain"),
        {"review": OTHER_NUMBER, "aspect": "clarity", "reason": "other"},
    ),
    "change_families": ("PATCH", f"{AT}/model-families", {"judges": {str(OTHER_NUMBER): "gpt"}}),
}


def theirs_of(number: int) -> list[Any]:
    """Without tokens, which count their own requests, and the record of their first use."""
    numbers = range(number, number + 10)
    tables = [(model._meta.pk.attname, rows) for model, rows in every_row() if model is not ApiToken]
    found = [row for primary_key, rows in tables for row in rows if row[primary_key] in numbers]
    return [row for row in found if row.get("kind") != FIRST_USE]


@pytest.fixture
def mine() -> FullEvaluation:
    make_full_evaluation(OTHER_NUMBER)
    return make_full_evaluation(NUMBER)


@pytest.mark.parametrize("name", SENT)
def test_a_number_of_another_evaluation_is_refused(name: str, mine: FullEvaluation) -> None:
    method, path, body = SENT[name]
    other = Membership.objects.get(pk=OTHER_NUMBER).user_id
    people = [{"me": mine.owner.pk, "them": other}[one] for one in body.get("reviewers", [])]
    asking = ApiClient(token_for(mine.owner))
    before, events = theirs_of(OTHER_NUMBER), Event.objects.count()
    answer = asking(method, path, {**body, **({"reviewers": people} if people else {})})
    assert answer.status_code in (404, 422), answer.content
    assert f"-{OTHER_NUMBER}" not in answer.content.decode()
    assert theirs_of(OTHER_NUMBER) == before
    assert Event.objects.count() == events
