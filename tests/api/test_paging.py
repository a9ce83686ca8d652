"""Lists go on where the page before ended, and a longer page asks no more questions of the database."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluations.domain import Role
from evaluations.models import Evaluation
from tests.asking import Asking
from tests.making import make_comparison, make_member

pytestmark = pytest.mark.django_db


def test_a_list_goes_on_after_its_last_row(asking: Asking, evaluation: Evaluation) -> None:
    ids = [make_comparison(evaluation).pk for _ in range(5)]
    seen: list[int] = []
    cursor = ""
    for _ in range(3):
        page = asking.get(f"/evaluations/study/comparisons?limit=2&cursor={cursor}").json()
        seen += [one["id"] for one in page["items"]]
        cursor = page["next"] or ""
    assert seen == ids
    assert cursor == ""


@pytest.mark.parametrize("path", ["comparisons", "people", "events"])
def test_the_number_of_queries_does_not_grow(path: str, asking: Asking, evaluation: Evaluation) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as found:
            assert asking.get(f"/evaluations/study/{path}").status_code == 200
        return len(found)

    for _ in range(2):
        make_comparison(evaluation)
        make_member(evaluation, Role.REVIEWER)
    few = queries()
    for _ in range(4):
        make_comparison(evaluation)
        make_member(evaluation, Role.REVIEWER)
    assert queries() == few
