"""Endpoints after they were made: limits, prices, and local servers that a worker found."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from evaluations.models.evaluations import Event
from evaluations.models.judges import Endpoint, LocalServer, Price
from tests.factories.evaluations import make_evaluation, make_user
from tests.factories.judges import make_llm_judge
from tests.helpers.page_text import html_of
from tests.rubrics.test_next_version_page import Values, form_of

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

PRICE = {"model": "small", "tokens_in": "0.15", "tokens_cached": "", "tokens_out": "0.6", "batch_percent": "50"}


@pytest.fixture
def endpoint(client: Client) -> Endpoint:
    client.force_login(make_user("root", is_superuser=True))
    return Endpoint.objects.create(name="local", base_url="http://localhost:11434/v1")


def values(endpoint: Endpoint, **changed: str) -> Values:
    fixed = {"name": endpoint.name, "base_url": endpoint.base_url, "key_variable": endpoint.key_variable}
    empty = ("max_in_flight", "requests_per_minute", "tokens_per_minute", "dialect", "timeout_seconds")
    return fixed | dict.fromkeys((*empty, "extra_headers", "extra_query", "extra_body"), "") | changed


def test_limits_are_changed_and_what_they_were_stands_in_the_record(client: Client, endpoint: Endpoint) -> None:
    address = reverse("endpoint", args=[endpoint.pk])
    sent = values(endpoint, name="nearby", max_in_flight="8", requests_per_minute="500", tokens_per_minute="200000")
    assert client.post(address, sent)["Location"] == address
    endpoint.refresh_from_db()
    assert (endpoint.name, endpoint.max_in_flight) == ("nearby", 8)
    assert (endpoint.requests_per_minute, endpoint.tokens_per_minute) == (500, 200_000)
    event = Event.objects.get(verb="changed", object_type="endpoint")
    assert event.before["name"] == "local"
    assert event.after["requests_per_minute"] == 500
    client.post(address, sent)
    assert Event.objects.filter(verb="changed").count() == 1
    listed = html_of(client.get(reverse("endpoints")))
    assert "500 requests" in listed
    assert "200,000 tokens" in listed


def test_an_address_changes_until_a_judge_is_asked_there(client: Client, endpoint: Endpoint) -> None:
    address = reverse("endpoint", args=[endpoint.pk])
    client.post(address, values(endpoint, base_url="http://localhost:8000/v1/"))
    endpoint.refresh_from_db()
    assert endpoint.base_url == "http://localhost:8000/v1"
    make_llm_judge(make_evaluation(), endpoint.base_url)
    client.post(address, values(endpoint, base_url="http://elsewhere:1/v1"))
    endpoint.refresh_from_db()
    assert endpoint.base_url == "http://localhost:8000/v1"
    assert html_of(client.get(address)).count("Judges use it, so it cannot change.") == 1


def test_an_endpoint_that_judges_use_gets_a_key_once(client: Client, endpoint: Endpoint) -> None:
    """One that came with a backup has none."""
    address = reverse("endpoint", args=[endpoint.pk])
    make_llm_judge(make_evaluation(), endpoint.base_url)
    for sent in ("FIRST_API_KEY", "OTHER_API_KEY", ""):
        client.post(address, values(endpoint, key_variable=sent))
        endpoint.refresh_from_db()
        assert endpoint.key_variable == "FIRST_API_KEY"
    assert html_of(client.get(address)).count("Judges use it, so it cannot change.") == 2


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"name": ""}, "This field is required"),
        ({"name": "taken"}, "An endpoint “taken” already exists"),
        ({"base_url": "ftp://x"}, "is not an address"),
        ({"key_variable": "HOME"}, "cannot name a key"),
        ({"max_in_flight": "0"}, "greater than or equal to 1"),
        ({"tokens_per_minute": "many"}, "Enter a whole number"),
    ],
)
def test_a_change_that_cannot_be_comes_back_with_the_reason(
    client: Client, endpoint: Endpoint, changed: Values, words: str
) -> None:
    Endpoint.objects.create(name="taken", base_url="http://localhost:1/v1")
    answer = client.post(reverse("endpoint", args=[endpoint.pk]), values(endpoint, **changed))
    assert answer.status_code == 422
    assert words in html_of(answer)
    endpoint.refresh_from_db()
    assert endpoint.name == "local"


def test_a_price_is_added_and_changed(client: Client, endpoint: Endpoint) -> None:
    address = reverse("endpoint", args=[endpoint.pk])
    assert "No prices yet." in html_of(client.get(address))
    assert client.post(reverse("endpoint_price", args=[endpoint.pk]), PRICE)["Location"] == address
    price = Price.objects.get()
    assert (price.tokens_in, price.tokens_cached, price.tokens_out) == (150_000_000, 150_000_000, 600_000_000)
    filled = form_of(client.get(address, {"model": "small"}).content)
    assert (filled["tokens_in"], filled["tokens_out"], filled["batch_percent"]) == ("0.15", "0.60", "50")
    client.post(reverse("endpoint_price", args=[endpoint.pk]), PRICE | {"tokens_cached": "0.075"})
    price.refresh_from_db()
    assert price.tokens_cached == 75_000_000
    assert Event.objects.filter(verb="set price").count() == 2
    assert "$0.075" in html_of(client.get(address))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"model": ""}, "This field is required"),
        ({"tokens_in": "-1"}, "greater than or equal to 0"),
        ({"tokens_out": "cheap"}, "Enter a number"),
        ({"batch_percent": "101"}, "less than or equal to 100"),
    ],
)
def test_a_price_that_cannot_be_comes_back_with_the_reason(
    client: Client, endpoint: Endpoint, changed: Values, words: str
) -> None:
    answer = client.post(reverse("endpoint_price", args=[endpoint.pk]), PRICE | changed)
    assert answer.status_code == 422
    assert words in html_of(answer)
    assert not Price.objects.exists()


def test_a_local_server_that_was_found_is_added_with_one_click(client: Client, endpoint: Endpoint) -> None:
    now = timezone.now()
    LocalServer.objects.create(
        base_url="http://127.0.0.1:11434/v1", kind="ollama", model_names=["old-model"], seen_at=now
    )
    names = [f"model-{number}" for number in range(7)]
    server = LocalServer.objects.create(
        base_url="http://127.0.0.1:8080/v1", kind="ollama", model_names=names, seen_at=now
    )
    page = html_of(client.get(reverse("endpoints")))
    assert "Found Ollama at <code>http://127.0.0.1:8080/v1</code> with model-0, model-1" in page
    assert "and 2 more" in page
    assert "old-model" not in page
    for _ in range(2):
        client.post(reverse("endpoint_found", args=[server.pk]))
    assert Endpoint.objects.get(base_url=server.base_url).name == "127.0.0.1:8080"
    assert "Found Ollama" not in html_of(client.get(reverse("endpoints")))


def test_all_of_it_is_for_site_administrators_alone(client: Client, endpoint: Endpoint) -> None:
    server = LocalServer.objects.create(base_url="http://127.0.0.1:1/v1", kind="ollama", seen_at=timezone.now())
    client.force_login(make_user())
    assert client.get(reverse("endpoint", args=[endpoint.pk])).status_code == 404
    assert client.post(reverse("endpoint", args=[endpoint.pk]), values(endpoint, name="mine")).status_code == 404
    assert client.post(reverse("endpoint_price", args=[endpoint.pk]), PRICE).status_code == 404
    assert client.post(reverse("endpoint_found", args=[server.pk])).status_code == 404
    assert not Price.objects.exists()


def test_the_page_costs_the_same_however_many_prices_there_are(client: Client, endpoint: Endpoint) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            client.get(reverse("endpoint", args=[endpoint.pk]))
        return len(captured)

    few = queries()
    for number in range(5):
        Price.objects.create(endpoint=endpoint, model=f"m{number}", tokens_in=1, tokens_cached=1, tokens_out=1)
    assert queries() == few


EXTRAS = {
    "dialect": "azure",
    "timeout_seconds": "300",
    "extra_headers": "X-Team: research\r\nX-Gateway-Key: $GATEWAY_API_KEY",
    "extra_query": "api-version: 2025-04-01-preview",
    "extra_body": '{"top_p": 0.9}',
}


def test_how_an_endpoint_is_asked_is_set_and_shown_again(client: Client, endpoint: Endpoint) -> None:
    address = reverse("endpoint", args=[endpoint.pk])
    assert "<details>" in html_of(client.get(address))
    assert client.post(address, values(endpoint, **EXTRAS)).status_code == 302
    endpoint.refresh_from_db()
    assert (endpoint.dialect, endpoint.timeout_seconds, endpoint.extra_body) == ("azure", 300, {"top_p": 0.9})
    assert endpoint.extra_headers == {"X-Team": "research", "X-Gateway-Key": "$GATEWAY_API_KEY"}
    event = Event.objects.get(verb="changed", object_type="endpoint")
    assert (event.before["extra_query"], event.after["extra_query"]) == ({}, {"api-version": "2025-04-01-preview"})
    page = html_of(client.get(address))
    assert "<details open>" in page
    assert "X-Gateway-Key: $GATEWAY_API_KEY" in page
    client.post(address, form_of(client.get(address).content))
    assert Event.objects.filter(verb="changed").count() == 1, "the form as it stands changes nothing"


def test_a_key_in_an_extra_is_refused_and_never_shown_again(client: Client, endpoint: Endpoint) -> None:
    key = "sk-proj-abcdefghij1234567890abcdefghij"
    for name, text in (
        ("extra_headers", f"X-Custom: {key}"),
        ("extra_query", f"code: {key}"),
        ("extra_body", f'{{"user": "{key}"}}'),
    ):
        answer = client.post(reverse("endpoint", args=[endpoint.pk]), values(endpoint, **{name: text}))
        assert answer.status_code == 422
        assert "may be a key" in html_of(answer)
        assert key not in html_of(answer)
    endpoint.refresh_from_db()
    assert endpoint.extra_headers == endpoint.extra_query == endpoint.extra_body == {}


def test_a_list_price_says_what_it_is_and_takes_the_place_of_another_at_a_click(
    client: Client, endpoint: Endpoint
) -> None:
    endpoint.base_url = "https://api.openai.com/v1"
    endpoint.save()
    address = reverse("endpoint", args=[endpoint.pk])
    client.post(reverse("endpoint_price", args=[endpoint.pk]), PRICE | {"model": "gpt-5", "most_tokens_out": "9000"})
    page = html_of(client.get(address))
    assert "9,000" in page
    assert "set manually" in page
    assert "Use list price" in page
    client.post(reverse("endpoint_price", args=[endpoint.pk]), {"list_price": "gpt-5"})
    price = Price.objects.get()
    assert (price.tokens_in, price.tokens_cached, price.tokens_out) == (1_250_000_000, 125_000_000, 10_000_000_000)
    assert price.most_tokens_out == 128_000
    page = html_of(client.get(address))
    assert "list price, as of 2026-09-05 (<a href=" in page
    assert "Use the list price" not in page
    refused = client.post(reverse("endpoint_price", args=[endpoint.pk]), {"list_price": "gpt-unheard-of"}, follow=True)
    assert "There is no list price for “gpt-unheard-of”" in html_of(refused)


def test_adding_an_endpoint_leads_back_to_where_one_came_from(client: Client, endpoint: Endpoint) -> None:
    sent = {"name": "one", "base_url": "http://localhost:9/v1"}
    back = reverse("judge_new", args=["study"])
    assert f'name="next" value="{back}"' in html_of(client.get(reverse("endpoint_new"), {"next": back}))
    assert client.post(reverse("endpoint_new"), sent | {"next": back})["Location"] == back
    answer = client.post(reverse("endpoint_new"), sent | {"name": "two", "next": "https://example.org/"})
    assert answer["Location"] == reverse("endpoint", args=[Endpoint.objects.get(name="two").pk])
