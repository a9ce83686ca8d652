"""What a request costs, in nano-USD, worked by hand."""

from typing import Any

import pytest

from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import RequestShape
from evaluations.domain.texts import Message
from evaluations.judges.endpoints.price_settings import PriceSettings, keep_list_price, set_price, use_list_price
from evaluations.judges.endpoints.prices import (
    find_price,
    max_reply_tokens,
    max_request_cost,
    pair_with_list_prices,
    request_cost,
)
from evaluations.judges.endpoints.services import EndpointSettings, create_endpoint
from evaluations.judges.runs.services import change_budget, start_run
from evaluations.models.evaluations import Event
from evaluations.models.judges import Endpoint, Price
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import make_llm_judge

pytestmark = pytest.mark.any_database

# 2.50, 1.25 and 10 USD for a million tokens; the Batch API at half of it.
PRICE = Price(tokens_in=2_500_000_000, tokens_cached=1_250_000_000, tokens_out=10_000_000_000, batch_percent=50)


@pytest.mark.parametrize(
    ("tokens", "cost"),
    [
        ((1000, 100, None), 1000 * 2500 + 100 * 10_000),
        ((1000, 100, 400), 600 * 2500 + 400 * 1250 + 100 * 10_000),
        ((0, 0, 0), 0),
        ((10, 0, 99), 10 * 1250),  # a server cannot have cached more than it was sent
        ((None, 100, None), None),
        ((1000, None, None), None),
    ],
)
def test_a_cost_is_the_sum_of_its_tokens_or_not_known(
    tokens: tuple[int | None, int | None, int | None], cost: int | None
) -> None:
    assert request_cost(PRICE, *tokens) == cost


def test_a_cost_is_rounded_up_and_halved_where_it_came_in_a_batch() -> None:
    one_nano_for_a_million = Price(tokens_in=1, tokens_cached=1, tokens_out=1, batch_percent=50)
    assert request_cost(one_nano_for_a_million, 1, 0) == 1
    assert request_cost(one_nano_for_a_million, 1_000_000, 1) == 2
    assert request_cost(PRICE, 1000, 100, batched=True) == 1_750_000
    assert request_cost(None, 1000, 100) is None


def test_the_worst_case_counts_every_byte_as_a_token() -> None:
    messages: list[Message] = [{"role": "system", "content": "é"}, {"role": "user", "content": "abc"}]
    tokens = 2 + 16 + 3 + 16
    assert max_request_cost(PRICE, messages, None, 10) == tokens * 2500 + 10 * 10_000
    assert max_request_cost(PRICE, messages, {"a": 1}, 10) == (tokens + 8) * 2500 + 10 * 10_000
    assert max_request_cost(PRICE, messages, None, None) is None
    assert max_request_cost(None, messages, None, 10) is None


@pytest.mark.django_db
def test_a_price_belongs_to_a_model_at_an_endpoint() -> None:
    judge = make_llm_judge(make_evaluation(), "http://127.0.0.1:9/v1")
    assert find_price(judge.endpoint, judge.model) is None
    at = {"endpoint_id": judge.endpoint_id, "model": judge.model}
    price = Price.objects.create(**at, tokens_in=1, tokens_cached=1, tokens_out=1)
    assert find_price(judge.endpoint, judge.model) == price
    assert find_price(judge.endpoint, "another") is None
    assert find_price(None, judge.model) is None


# ---- list prices ---------------------------------------------------------------------------

HAIKU = "claude-haiku-5-5"  # 0.10, 0.01 and 0.50 USD; five times as much over 100,000 tokens in; writing costs 125 %


@pytest.fixture
def anthropic() -> Endpoint:
    return create_endpoint(EndpointSettings(name="claude", base_url="https://api.anthropic.com/v1"), user=None)


@pytest.mark.django_db
def test_a_list_price_is_known_before_it_is_stored_and_says_where_it_is_from(anthropic: Endpoint) -> None:
    price = find_price(anthropic, HAIKU)
    assert price is not None
    assert price._state.adding, "it is not stored"
    assert (price.tokens_in, price.tokens_out) == (100_000_000, 500_000_000)
    assert (price.batch_percent, price.most_tokens_out) == (50, 128_000)
    assert price.source == "as of 2026-10-24 (https://platform.claude.com/docs/en/about-claude/pricing)"
    assert find_price(anthropic, "claude-unheard-of") is None


@pytest.mark.django_db
def test_a_list_price_of_long_prompts_and_written_tokens_is_worked_by_hand(anthropic: Endpoint) -> None:
    price = find_price(anthropic, HAIKU)
    assert request_cost(price, 100_000, 1_000, 40_000) == 60_000 * 100 + 40_000 * 10 + 1_000 * 500
    assert request_cost(price, 100_001, 1_000, 40_000) == 5 * (60_001 * 100 + 40_000 * 10 + 1_000 * 500)
    assert request_cost(price, 1_000, 0, 400, tokens_written=600) == 600 * 125 + 400 * 10
    assert request_cost(PRICE, 1_000, 0, 400, tokens_written=600) == 600 * 3125 + 400 * 1250
    tokens = 3 + 16
    assert max_request_cost(price, [{"role": "user", "content": "abc"}], None, 10) == tokens * 125 + 10 * 500
    long = "a" * (100_001 - 16)
    assert max_request_cost(price, [{"role": "user", "content": long}], None, 10) == 5 * (100_001 * 125 + 10 * 500)


@pytest.mark.django_db
def test_a_judge_keeps_the_list_price_and_a_persons_price_is_never_replaced_by_it(anthropic: Endpoint) -> None:
    set_price(anthropic, PriceSettings(model="claude-opus-5-5", tokens_in="1", tokens_out="2"), user=None)
    evaluation = make_evaluation()
    for model in (HAIKU, "claude-opus-5-5", "claude-unheard-of"):
        make_llm_judge(evaluation, anthropic.base_url, name=model, model=model)
    kept = Price.objects.get(model=HAIKU)
    assert (kept.tokens_in, kept.source[:16]) == (100_000_000, "as of 2026-10-24")
    assert Event.objects.get(verb="set price", object_id=kept.pk).after["source"] == kept.source
    assert Price.objects.get(model="claude-opus-5-5").tokens_in == 10**9
    assert Price.objects.count() == 2

    own = use_list_price(anthropic, model="claude-opus-5-5", user=None)
    assert (own.tokens_in, own.most_tokens_out) == (4 * 10**9, 128_000)
    with pytest.raises(InputRefused, match="There is no list price for “claude-unheard-of”"):
        use_list_price(anthropic, model="claude-unheard-of", user=None)


@pytest.mark.django_db
def test_a_price_that_was_kept_stays_until_someone_takes_the_newer_one(anthropic: Endpoint) -> None:
    older = {"tokens_in": 1, "tokens_cached": 1, "tokens_out": 1, "source": "as of 2026-01-01 (https://example.org)"}
    Price.objects.create(endpoint=anthropic, model=HAIKU, **older)
    keep_list_price(anthropic, HAIKU, user=None)
    price = find_price(anthropic, HAIKU)
    assert price is not None
    assert price.tokens_in == 1
    ((stored, newer),) = pair_with_list_prices(anthropic)
    assert newer is not None
    assert (stored.tokens_in, newer.tokens_in) == (1, 100_000_000)
    use_list_price(anthropic, model=HAIKU, user=None)
    assert [line for _, line in pair_with_list_prices(anthropic)] == [None]


@pytest.mark.django_db
def test_settings_that_change_what_tokens_cost_have_no_list_price() -> None:
    base_url, body = "https://api.openai.com/v1", {"service_tier": "priority"}
    endpoint = create_endpoint(EndpointSettings(name="fast", base_url=base_url, extra_body=body), user=None)
    assert find_price(endpoint, "gpt-5") is None


@pytest.mark.django_db
def test_a_reply_is_bounded_by_the_judge_or_else_by_the_model() -> None:
    judge = make_llm_judge(make_evaluation(), "http://127.0.0.1:9/v1")
    price = Price(tokens_in=1, tokens_cached=1, tokens_out=1, most_tokens_out=900)
    assert (max_reply_tokens(judge, None), max_reply_tokens(judge, PRICE), max_reply_tokens(judge, price)) == (
        None,
        None,
        900,
    )
    judge.max_tokens = 50
    assert (max_reply_tokens(judge, None), max_reply_tokens(judge, price)) == (50, 50)
    judge.request_shape = RequestShape(left_out=("max_tokens",)).as_json()  # a limit that is not sent bounds nothing
    assert (max_reply_tokens(judge, None), max_reply_tokens(judge, price)) == (None, 900)


@pytest.mark.django_db
def test_the_longest_reply_stays_known_while_a_budget_rests_on_it() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    judge = make_llm_judge(evaluation, "http://127.0.0.1:9/v1")
    assert judge.endpoint is not None
    costs: dict[str, Any] = {"model": judge.model, "tokens_in": "1", "tokens_out": "2"}
    with pytest.raises(InputRefused, match="Longest reply: a whole number of tokens from 1"):
        set_price(judge.endpoint, PriceSettings(**costs, most_tokens_out=0), user=None)
    set_price(judge.endpoint, PriceSettings(**costs, most_tokens_out=500), user=None)
    run = start_run(judge, user=None, budget=10**9)
    with pytest.raises(InputRefused, match=f"Run {run.pk} has a budget that needs the longest reply"):
        set_price(judge.endpoint, PriceSettings(**costs), user=None)
    change_budget(run, None, user=None)
    assert set_price(judge.endpoint, PriceSettings(**costs), user=None).most_tokens_out is None
