"""The filters that programs use: those of the page, described in one place and refused alike."""

from urllib.parse import urlencode

import pytest
from django.http import QueryDict

from evaluations.api_site import build_openapi
from evaluations.comparisons.forms import FilterForm
from evaluations.domain.filters import PARAMETER_DESCRIPTIONS
from evaluations.domain.roles import Role
from evaluations.models.evaluations import Evaluation
from tests.factories.evaluations import make_comparison, make_member
from tests.helpers.api_client import ApiClient, token_for

pytestmark = pytest.mark.django_db

LIST = "/evaluations/study/comparisons"


def test_every_filter_is_on_the_page_and_in_the_openapi_document(evaluation: Evaluation) -> None:
    everything = QueryDict("&".join(f"{name}=x" for name in (*PARAMETER_DESCRIPTIONS, "saved_filter")))
    form = FilterForm(everything, evaluation=evaluation, sees_all=True, sees_judges=True)
    listing = build_openapi()["paths"]["/api/v1/evaluations/{slug}/comparisons"]["get"]
    documented = {one["name"] for one in listing["parameters"]} - {"slug", "cursor", "limit"}
    assert set(form.fields) == documented == {*PARAMETER_DESCRIPTIONS, "saved_filter"}


@pytest.mark.parametrize(
    "query",
    [
        *(
            "colour=red",
            "judge_failed=never",
            "candidate=nobody",
            "tag=none",
            "saved_filter=none",
            "import=x",
            "category=none",
        ),
        *("choice=A", "against=alpha", "reviews=some", "aspect=charm", "rater=ann"),
    ],
)
def test_a_filter_that_cannot_be_is_refused(asking: ApiClient, evaluation: Evaluation, query: str) -> None:
    make_comparison(evaluation)
    assert asking.get(f"{LIST}?{query}").status_code == 422


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"choice": "A"}, "aspect"),
        ({"choice": "A", "aspect": "clarity", "rater": "ann"}, "rater"),
        ({"choice": "C", "aspect": "clarity"}, "choice"),
        ({"against": "alpha"}, "candidate"),
        ({"candidate": "alpha", "against": "alpha"}, "against"),
        ({"reviews": "some"}, "reviews"),
        ({"judge_failed": "never"}, "judge_failed"),
        ({"import": "x"}, "import"),
    ],
)
def test_a_refused_filter_names_its_field(
    asking: ApiClient, evaluation: Evaluation, wanted: dict[str, str], field: str
) -> None:
    listed = asking.get(f"{LIST}?{urlencode(wanted)}").json()
    saved = asking.post("/evaluations/study/saved-filters", {"name": "mine", "filter": wanted}).json()
    assert (listed["code"], listed["errors"][0]["field"]) == ("invalid", f"query.{field}")
    assert (saved["code"], saved["errors"][0]["field"]) == ("invalid", f"body.filter.{field}")


@pytest.mark.parametrize("name", ["candidate", "rater", "saved_filter", "import", "origin", "reviews"])
def test_a_reviewer_uses_no_filter_that_could_reveal_what_is_hidden(evaluation: Evaluation, name: str) -> None:
    comparison = make_comparison(evaluation, query="Why?")
    reviewer = ApiClient(token_for(make_member(evaluation, Role.REVIEWER)))
    assert [one["id"] for one in reviewer.get(f"{LIST}?q=why").json()["items"]] == [comparison.pk]
    refused = reviewer.get(f"{LIST}?{name}=alpha").json()
    assert (refused["code"], refused["errors"][0]["field"]) == ("invalid", f"query.{name}")
