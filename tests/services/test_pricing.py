"""What a request costs, in nano-USD, worked by hand."""

import pytest

from evaluations.domain import Message
from evaluations.models import Price
from evaluations.services.judging.pricing import cost_of, price_of, worst_case
from tests.judges import make_judge
from tests.making import make_evaluation

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
    assert cost_of(PRICE, *tokens) == cost


def test_a_cost_is_rounded_up_and_halved_where_it_came_in_a_batch() -> None:
    one_nano_for_a_million = Price(tokens_in=1, tokens_cached=1, tokens_out=1, batch_percent=50)
    assert cost_of(one_nano_for_a_million, 1, 0) == 1
    assert cost_of(one_nano_for_a_million, 1_000_000, 1) == 2
    assert cost_of(PRICE, 1000, 100, batched=True) == 1_750_000
    assert cost_of(None, 1000, 100) is None


def test_the_worst_case_counts_every_byte_as_a_token() -> None:
    messages: list[Message] = [{"role": "system", "content": "é"}, {"role": "user", "content": "abc"}]
    tokens = 2 + 16 + 3 + 16
    assert worst_case(PRICE, messages, None, 10) == tokens * 2500 + 10 * 10_000
    assert worst_case(PRICE, messages, {"a": 1}, 10) == (tokens + 8) * 2500 + 10 * 10_000
    assert worst_case(PRICE, messages, None, None) is None
    assert worst_case(None, messages, None, 10) is None


@pytest.mark.django_db
def test_a_price_belongs_to_a_model_at_an_endpoint() -> None:
    judge = make_judge(make_evaluation(), "http://127.0.0.1:9/v1")
    assert price_of(judge.endpoint, judge.model) is None
    at = {"endpoint_id": judge.endpoint_id, "model": judge.model}
    price = Price.objects.create(**at, tokens_in=1, tokens_cached=1, tokens_out=1)
    assert price_of(judge.endpoint, judge.model) == price
    assert price_of(judge.endpoint, "another") is None
    assert price_of(None, judge.model) is None
