"""Settings that a program changes, by the rules of the page."""

import pytest

from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from tests.helpers.api_client import ApiClient

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

SETTINGS = "/evaluations/study/settings"


def test_what_is_left_out_stays(asking: ApiClient, evaluation: Evaluation) -> None:
    before = asking.get(SETTINGS).json()
    changed = asking.patch(SETTINGS, {"guidelines": "one\r\ntwo\n", "reviews_wanted": 3, "review_rubric": None}).json()
    assert changed == {**before, "guidelines": "one\ntwo", "reviews_wanted": 3, "review_rubric": None}
    assert asking.get(SETTINGS).json() == changed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("name", " "), ("name", None), ("reviews_wanted", 0), ("reservation_minutes", None), ("reveal", "sometimes")),
        *(("review_rubric", 987_654), ("shown_judge", 987_654)),
    ],
)
def test_what_cannot_be_is_named(asking: ApiClient, evaluation: Evaluation, name: str, value: object) -> None:
    answer = asking.patch(SETTINGS, {name: value})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, f"body.{name}")


def test_the_own_account_is_changed_by_the_rules_of_its_page(asking: ApiClient, owner: User) -> None:
    assert asking.patch("/me", {"theme": "dark"}).json()["theme"] == "dark"
    for name, value in (("theme", "pink"), ("timezone", "Mars/Base"), ("display_name", None)):
        assert asking.patch("/me", {name: value}).json()["errors"][0]["field"] == f"body.{name}"
    owner.refresh_from_db()
    assert (owner.theme, owner.timezone) == ("dark", "UTC")
