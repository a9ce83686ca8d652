"""How many statements each step of a review takes, so that none comes in unseen."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from tests.factories.review_page import HTMX, build_choices, make_judged_comparison, review_url

pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.usefixtures("judge_shown")]

# The transaction of a step counts as two, and on PostgreSQL counting a label locks its comparison.
LOCKS = int(connection.features.has_select_for_update)
STEPS = {"page": 8, "ahead": 16, "draft": 5, "save": 29, "confirm": 19 + LOCKS}


@pytest.fixture
def steps(reviewer: User, evaluation: Evaluation) -> dict[str, Callable[[], Any]]:
    """The requests of a review in sight of the judge, after a first one that froze the rubric and filled the queue."""
    browser = Client(headers=HTMX)
    browser.force_login(reviewer)
    done, current, _ = (make_judged_comparison(evaluation) for _ in range(3))
    for request in list_requests(browser, done).values():
        request()
    return list_requests(browser, current)


def list_requests(browser: Client, comparison: Comparison) -> dict[str, Callable[[], Any]]:
    def post(step: str, **fields: str) -> Any:
        return browser.post(review_url(step, comparison), {**build_choices(), "tab": "one", **fields})

    ahead = reverse("review_ahead", args=[comparison.evaluation.slug])
    return {
        "page": lambda: browser.get(review_url("review_comparison", comparison), headers={"HX-Request": ""}),
        "ahead": lambda: browser.get(ahead, query_params={"besides": [str(comparison.pk)]}),
        "draft": lambda: post("review_draft", number="0"),
        "save": lambda: post("review_save", then="ahead"),
        "confirm": lambda: post("review_confirm", version="1", then="ahead"),
    }


def test_each_step_of_a_review_takes_as_many_statements_as_it_needs(steps: dict[str, Callable[[], Any]]) -> None:
    counts = {}
    for name, request in steps.items():
        with CaptureQueriesContext(connection) as statements:
            response = request()
        assert response.status_code == (204 if name == "confirm" else 200)
        counts[name] = len(statements)
    assert counts == STEPS
