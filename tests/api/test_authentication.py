"""Who is let in: tokens, what they may be used for, how often, and what is said to all others."""

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluations.domain.roles import Role, Scope
from evaluations.members.services import create_token, disable_account
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.users import ApiToken, User
from tests.factories.evaluations import make_evaluation, make_member, make_user
from tests.helpers.api_client import ApiClient, token_for

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def test_a_token_opens_what_its_person_may_see(asking: ApiClient, owner: User) -> None:
    answer = asking.get("/evaluations")
    assert answer.status_code == 200
    assert [one["slug"] for one in answer.json()["items"]] == ["study"]
    assert asking.get("/me").json()["username"] == owner.username


def test_only_the_hash_of_a_token_is_kept(owner: User) -> None:
    token, text = create_token(owner, name="nightly", scopes=[Scope.READ], days=1)
    assert text.startswith(token.prefix)
    assert len(text) > 40
    assert text not in str(ApiToken.objects.values().get())


def test_a_session_opens_nothing(owner: User, evaluation: Evaluation) -> None:
    client = Client()
    client.force_login(owner)
    answer = client.get("/api/v1/evaluations")
    assert answer.status_code == 401
    assert answer["Content-Type"] == "application/problem+json"
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_a_token_of_a_disabled_account_opens_nothing(evaluation: Evaluation, owner: User) -> None:
    person = make_member(evaluation, Role.VIEWER)
    asking = ApiClient(token_for(person))
    assert asking.get("/evaluations/study").status_code == 200
    disable_account(person, by=owner)
    assert asking.get("/evaluations/study").json()["code"] == "token_unknown"


def test_an_expired_or_revoked_token_opens_nothing(asking: ApiClient, owner: User) -> None:
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert asking.get("/evaluations").json()["code"] == "token_expired"
    ApiToken.objects.update(expires_at=timezone.now() + timedelta(days=1), revoked_at=timezone.now())
    assert asking.get("/evaluations").json()["code"] == "token_unknown"


def test_a_token_does_nothing_that_its_scopes_do_not_say(owner: User, evaluation: Evaluation) -> None:
    asking = ApiClient(token_for(owner, [Scope.READ]))
    answer = asking.post("/evaluations", {"name": "Another"})
    assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")
    assert Evaluation.objects.count() == 1


def test_a_token_never_does_more_than_its_person(evaluation: Evaluation) -> None:
    asking = ApiClient(token_for(make_member(evaluation, Role.VIEWER)))
    answer = asking.post("/evaluations/study/archive")
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert asking.get("/accounts").status_code == 404


def test_a_token_that_is_tied_to_one_evaluation_opens_no_other(owner: User, evaluation: Evaluation) -> None:
    make_evaluation(owner, slug="other")
    asking = ApiClient(token_for(owner, evaluation=evaluation))
    assert [one["slug"] for one in asking.get("/evaluations").json()["items"]] == ["study"]
    assert asking.get("/evaluations/study").status_code == 200
    assert asking.get("/evaluations/other").status_code == 404
    assert asking.post("/evaluations", {"name": "New"}).status_code == 404


def test_what_was_done_with_a_token_is_recorded_with_it(asking: ApiClient) -> None:
    asking.post("/evaluations/study/archive")
    event = Event.objects.latest("pk")
    assert (event.verb, event.token and event.token.name) == ("changed", "a program")
    told = asking.get("/evaluations/study/events").json()["items"][0]
    assert (told["verb"], told["through_token"]) == ("changed", "a program")


def test_a_token_is_told_how_often_it_may_still_ask(asking: ApiClient, settings: LazySettings) -> None:
    settings.API_REQUESTS_PER_MINUTE = 2
    ApiToken.objects.update(window=0)
    first, second, third = (asking.get("/me") for _ in range(3))
    if first["RateLimit-Reset"] < third["RateLimit-Reset"]:
        pytest.skip("a minute ended meanwhile")
    assert [first["RateLimit-Remaining"], second["RateLimit-Remaining"]] == ["1", "0"]
    assert (third.status_code, third.json()["code"]) == (429, "rate_limited")
    assert 1 <= int(third["Retry-After"]) <= 60


def test_whoever_is_refused_is_told_it_too(owner: User, evaluation: Evaluation) -> None:
    reading = ApiClient(token_for(owner, scopes=(Scope.READ,)))
    refused = reading.post("/evaluations", {"name": "New"})
    assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")
    assert int(refused["RateLimit-Remaining"]) < int(refused["RateLimit-Limit"])


def test_a_token_is_made_shown_once_and_revoked_on_ones_own_page(client: Client, owner: User) -> None:
    client.force_login(owner)
    sent = {"name": "nightly", "scopes": ["read", "write"], "days": "30", "evaluation": ""}
    page = client.post(reverse("tokens"), sent)
    text = page.content.decode().split('id="token" class="mono" value="')[1].split('"')[0]
    assert ApiClient(text).get("/me").json()["token"]["scopes"] == ["read", "write"]
    assert text not in client.get(reverse("tokens")).content.decode()
    made = ApiToken.objects.get()
    client.force_login(make_user("somebody"))
    assert client.post(reverse("token_revoke", args=[made.pk])).status_code == 404
    client.force_login(owner)
    client.post(reverse("token_revoke", args=[made.pk]))
    assert ApiClient(text).get("/me").status_code == 401


def test_a_token_without_a_scope_is_refused_on_its_page(client: Client, owner: User) -> None:
    client.force_login(owner)
    answer = client.post(reverse("tokens"), {"name": "nothing", "days": "30"})
    assert answer.status_code == 422
    assert not ApiToken.objects.exists()
