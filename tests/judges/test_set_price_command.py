from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evaluations.judges.endpoints.services import EndpointSettings, create_endpoint
from evaluations.models.evaluations import Event
from evaluations.models.judges import Endpoint, Price

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture
def endpoint() -> Endpoint:
    return create_endpoint(EndpointSettings(name="mine", base_url="http://127.0.0.1:9/v1"), user=None)


def test_a_price_is_set_by_the_endpoints_name_or_address(
    endpoint: Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("set_price", "--endpoint", "mine", "--model", "m", "--in", "0.15", "--out", "0.6")
    assert "USD 0.15 in, 0.15 cached and 0.60 out" in capsys.readouterr().out
    call_command(
        *("set_price", "--base-url", "http://127.0.0.1:9/v1", "--model", "m", "--in", "0.15", "--out", "0.6"),
        *("--cached", "0.075", "--batch-percent", "40"),
    )
    price = Price.objects.get()
    assert (price.tokens_in, price.tokens_cached, price.tokens_out) == (150_000_000, 75_000_000, 600_000_000)
    assert price.batch_percent == 40
    first, second = Event.objects.filter(verb="set price").order_by("pk")
    assert (first.before, first.after["cached"]) == ({}, "0.15")
    assert (second.before["cached"], second.after["cached"]) == ("0.15", "0.075")


def test_the_same_price_again_is_no_event(endpoint: Endpoint) -> None:
    for _ in range(2):
        call_command("set_price", endpoint="mine", model="m", tokens_in="1", tokens_out="2")
    assert Event.objects.filter(verb="set price").count() == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"endpoint": "other"}, "no endpoint “other”"),
        ({"tokens_in": "cheap"}, "Price of tokens in: an amount in USD"),
        ({"tokens_in": "-1"}, "from 0 to 1000000 USD"),
        ({"tokens_in": "NaN"}, "from 0 to 1000000 USD"),
        ({"tokens_in": "0.0000000001"}, "at most nine places"),
        ({"batch_percent": 101}, "from 0 to 100"),
        ({"model": " "}, "Enter the model ID"),
    ],
)
def test_bad_input_is_one_line(endpoint: Endpoint, options: dict[str, Any], problem: str) -> None:
    given = {"endpoint": "mine", "model": "m", "tokens_in": "1", "tokens_out": "2", **options}
    with pytest.raises(CommandError, match=problem):
        call_command("set_price", **given)
    assert not Price.objects.exists()


def test_the_longest_reply_comes_with_a_price(endpoint: Endpoint) -> None:
    call_command("set_price", endpoint="mine", model="m", tokens_in="1", tokens_out="2", most_tokens_out=4096)
    assert Price.objects.get().most_tokens_out == 4096


def test_the_list_price_is_set_where_the_provider_has_one(capsys: pytest.CaptureFixture[str]) -> None:
    create_endpoint(EndpointSettings(name="grok", base_url="https://api.x.ai/v1"), user=None)
    call_command("set_price", "--endpoint", "grok", "--model", "grok-4.7", "--list-price")
    told = capsys.readouterr().out
    assert "USD 2.00 in, 0.50 cached and 6.00 out" in told
    assert "List price as of 2026-09-29 (https://docs.x.ai/developers/models/grok-4.7)." in told
    for options, problem in (
        (("--model", "grok-0", "--list-price"), "no list price for “grok-0”"),
        (("--model", "grok-4.7", "--list-price", "--in", "1"), "--list-price sets the whole price"),
        (("--model", "grok-4.7", "--in", "1"), "needs --in and --out, or --list-price"),
    ):
        with pytest.raises(CommandError, match=problem):
            call_command("set_price", "--endpoint", "grok", *options)
