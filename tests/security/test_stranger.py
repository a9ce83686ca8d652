"""One account with no rights: whatever well-formed request it sends, it creates, enrols, spends and stops nothing."""

import json
from typing import Any, Final

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain.roles import Role
from evaluations.judges.endpoints.grants import grant_endpoint
from evaluations.models.endpoint_grants import EndpointGrant
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint, Judge
from evaluations.models.runs import Run
from evaluations.models.users import Invitation, Membership, SignInLink, SitePolicy, User
from tests.factories.evaluations import make_comparison, make_evaluation, make_member, make_user
from tests.factories.full_evaluation import make_full_evaluation
from tests.factories.judges import make_llm_judge
from tests.helpers.api_client import ApiClient, token_for
from tests.helpers.browser_client import sign_in_client
from tests.web.test_access import NUMBER

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

NAMES: Final = ("zoe-known", "zoe-unknown")  # only the first is an account
WATCHED: Final = (Evaluation, Membership, Invitation, Endpoint, EndpointGrant, Judge, Run, SignInLink, SitePolicy)
REFUSALS: Final = (403, 404)
ENDPOINT: Final = {"name": "mine", "base_url": "https://api.example.org/v1", "key_variable": "OPENAI_API_KEY"}
POLICY: Final = {"everyone_creates_evaluations": True, "everyone_creates_accounts": True, "everyone_makes_links": True}
RIGHTS: Final = {"can_create_evaluations": True, "can_create_accounts": True, "can_make_links": True}
# What an account may send about the site: pages by name, with arguments and form.
PAGES: Final[tuple[tuple[str, list[Any], dict[str, Any]], ...]] = (
    ("evaluation_new", [], {"name": "Mine", "slug": "mine", "description": ""}),
    ("site_policy", [], dict.fromkeys(POLICY, "on")),
    ("account_rights", [NUMBER], dict.fromkeys(RIGHTS, "on")),
    ("account_end_access", [NUMBER], {}),
    ("account_link", [NUMBER], {}),
    ("account_disable", [NUMBER], {}),
    ("account_enable", [NUMBER], {}),
    ("endpoint_new", [], ENDPOINT),
    ("endpoint", [NUMBER], {"name": "renamed", "max_in_flight": "1"}),
    ("endpoint_found", [NUMBER], {}),
    ("endpoint_price", [NUMBER], {"model": "m", "tokens_in": "0", "tokens_out": "0"}),
    ("endpoint_check", [NUMBER], {"model": "m"}),
    ("endpoint_grant", [NUMBER], {"evaluation": NUMBER, "budget": ""}),
    ("endpoint_withdraw", [NUMBER], {"grant": NUMBER}),
    ("endpoints_run_cancel", [NUMBER], {}),
)
OPERATIONS: Final[tuple[tuple[str, str, Any], ...]] = (
    ("POST", "/evaluations", {"name": "Mine", "slug": "mine"}),
    ("PATCH", "/policy", POLICY),
    ("PATCH", f"/accounts/{NUMBER}", RIGHTS),
    ("POST", f"/accounts/{NUMBER}/link", {}),
    ("POST", f"/accounts/{NUMBER}/disable", {}),
    ("POST", f"/accounts/{NUMBER}/enable", {}),
    ("POST", f"/accounts/{NUMBER}/end-access", {}),
    ("POST", "/endpoints", ENDPOINT),
    ("PATCH", f"/endpoints/{NUMBER}", {"max_in_flight": 1}),
    ("PUT", f"/endpoints/{NUMBER}/price", {"model": "m", "tokens_in": 0, "tokens_out": 0}),
    ("POST", f"/endpoints/{NUMBER}/check", {"model": "m"}),
    ("PUT", f"/endpoints/{NUMBER}/grants", {"evaluation": "mine", "budget_usd": None}),
    ("DELETE", f"/endpoints/{NUMBER}/grants/{NUMBER}", None),
    ("POST", f"/runs/{NUMBER}/cancel", {}),
)


def watched_rows() -> list[Any]:
    users = list(User.objects.order_by("pk").values_list("pk", "username", "is_active", "is_superuser", *RIGHTS))
    return [users, *(list(model._base_manager.order_by("pk").values()) for model in WATCHED)]


@pytest.fixture
def stranger_client() -> Client:
    make_full_evaluation(NUMBER)
    return sign_in_client(make_user("stranger"))


@pytest.mark.parametrize(("name", "arguments", "form"), PAGES, ids=[page[0] for page in PAGES])
def test_no_page_of_the_site_obeys_an_account_without_rights(
    name: str, arguments: list[Any], form: dict[str, Any], stranger_client: Client
) -> None:
    before = watched_rows()
    assert stranger_client.post(reverse(name, args=arguments), form).status_code in REFUSALS
    assert watched_rows() == before


@pytest.mark.parametrize(("method", "path", "body"), OPERATIONS, ids=[f"{m} {path}" for m, path, _ in OPERATIONS])
def test_no_operation_of_the_site_obeys_an_account_without_rights(method: str, path: str, body: Any) -> None:
    make_full_evaluation(NUMBER)
    api = ApiClient(token_for(make_user("stranger")))
    before = watched_rows()
    assert api(method, path, body).status_code in REFUSALS
    assert watched_rows() == before


def test_an_owner_without_rights_enrols_nobody_and_learns_no_username() -> None:
    """Invitations to a name that exists and to one that does not are answered in the same words."""
    owner = make_user("plain-owner")
    evaluation = make_evaluation(owner, slug="mine")
    make_user(NAMES[0])
    api, before = ApiClient(token_for(owner)), list(User.objects.order_by("pk").values_list("pk", flat=True))
    direct = {name: api.post("/evaluations/mine/members", {"username": name, "role": "viewer"}) for name in NAMES}
    assert {answer.status_code for answer in direct.values()} == {403}
    said = {name: json.loads(answer.content)["detail"].replace(name, "…") for name, answer in direct.items()}
    assert len(set(said.values())) == 1
    client = sign_in_client(owner)
    pages = {}
    for name in NAMES:
        answer = client.post(reverse("member_invite", args=["mine"]), {"names": name, "role": "viewer"}, follow=True)
        pages[name] = answer.content.decode().count(name), answer.status_code
    assert pages[NAMES[0]] == pages[NAMES[1]]
    assert list(Membership.objects.filter(evaluation=evaluation).values_list("user", flat=True)) == [owner.pk]
    assert list(User.objects.order_by("pk").values_list("pk", flat=True)) == before


def test_a_manager_spends_only_at_endpoints_that_are_granted() -> None:
    administrator = make_user("admin", is_superuser=True)
    evaluation = make_evaluation(administrator, slug="mine")
    judge = make_llm_judge(evaluation, base_url="http://127.0.0.1:9/v1")
    assert judge.endpoint is not None
    EndpointGrant.objects.all().delete()
    Endpoint.objects.update(is_offered=False)
    api = ApiClient(token_for(make_member(evaluation, Role.MANAGER)))
    body = {"endpoint": judge.endpoint.pk, "model": "m", "name": "n", "version": judge.rubric_version_id}
    refused = api.post("/evaluations/mine/judges", body)
    assert refused.status_code == 422
    assert judge.endpoint.base_url not in refused.content.decode()
    assert api.post("/evaluations/mine/runs", {"judges": [judge.pk]}).status_code == 422
    tried = api.post(f"/evaluations/mine/judges/{judge.pk}/test", {"subject": make_comparison(evaluation).pk})
    assert tried.status_code == 422
    assert not Run.objects.exists()
    grant_endpoint(judge.endpoint, evaluation, budget=None, user=administrator)
    assert api.post("/evaluations/mine/judges", body).status_code == 201
