"""What a run would take: the numbers are worked by hand from the rules that the estimate states."""

import pytest

from evaluations.domain.judges import OutputMode, RunChannel, RunOrders
from evaluations.judges.endpoints.price_settings import PriceSettings, set_price
from evaluations.judges.runs.estimates import ValueRange, count_message_tokens, count_prompt_tokens, estimate_run
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint, Judge
from evaluations.models.runs import Call
from tests.factories.evaluations import make_comparison
from tests.factories.judges import make_baseline_judge, make_llm_judge, run_judge_here
from tests.helpers.llm_server import llm_server

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def three_comparisons(evaluation: Evaluation) -> None:
    for _ in range(3):
        make_comparison(evaluation)


@pytest.fixture
def judge(evaluation: Evaluation) -> Judge:
    return make_llm_judge(evaluation, "http://127.0.0.1:9/v1", max_tokens=200)


def give_price(judge: Judge) -> None:
    assert judge.endpoint is not None
    set_price(
        judge.endpoint, PriceSettings(model=judge.model, tokens_in="2", tokens_out="8", batch_percent=50), user=None
    )


def prompt_of(judge: Judge) -> float:
    """The three comparisons say the same, so that every prompt is as long."""
    assert judge.rubric_version is not None
    return count_prompt_tokens(judge, judge.rubric_version.spec(), judge.evaluation.comparisons.all()[0])


def test_four_characters_of_ascii_make_a_token_and_any_other_makes_one() -> None:
    # 8 / 4 + 3 for the characters, and 4 for the message.
    assert count_message_tokens([{"role": "user", "content": "abcdefgh東京都"}]) == 2 + 3 + 4
    # The schema is sent too.
    assert count_message_tokens([{"role": "user", "content": ""}], '{"a": 1}') == 2 + 4


def test_where_nothing_is_known_of_a_model_its_replies_are_assumed(judge: Judge) -> None:
    told = estimate_run(judge, orders=RunOrders.BOTH)
    assert (told.calls, told.requests) == (6, ValueRange(6, 6))
    assert told.tokens_in == ValueRange(prompt_of(judge) * 0.8 * 6, prompt_of(judge) * 1.25 * 6)
    # Replies of 100 tokens, or of all 200 that are allowed.
    assert told.tokens_out == ValueRange(600, 1200)
    assert "replies of 100 to 200 tokens" in told.assumptions[1]


def test_an_unknown_price_makes_an_unknown_cost_and_says_so(judge: Judge) -> None:
    told = estimate_run(judge)
    assert told.cost is None
    assert any("No price is set for “test-model”" in said for said in told.assumptions)


def test_a_known_price_gives_a_span_of_cost(judge: Judge) -> None:
    give_price(judge)
    told = estimate_run(judge)
    # 2 USD a million tokens in are 2,000 nano-USD a token, 8 USD out are 8,000.
    assert told.cost is not None
    assert told.cost.low == pytest.approx(told.tokens_in.low * 2_000 + 600 * 8_000)
    assert told.cost.high == pytest.approx(told.tokens_in.high * 2_000 + 1200 * 8_000)


def test_the_batch_api_takes_its_part_of_the_price_and_names_no_minutes(judge: Judge) -> None:
    give_price(judge)
    live, batch = estimate_run(judge), estimate_run(judge, channel=RunChannel.BATCH)
    assert live.cost is not None
    assert batch.cost is not None
    assert batch.cost.high == pytest.approx(live.cost.high / 2)
    assert batch.minutes is None
    assert "within a day" in batch.assumptions[-1]


def test_time_follows_from_the_limits_of_the_endpoint(judge: Judge) -> None:
    # 32 at once, 2 to 10 seconds each: 6 calls take 6 × 2 / 32 to 6 × 10 / 32 seconds.
    told = estimate_run(judge).minutes
    assert told is not None
    assert (told.low, told.high) == pytest.approx((6 * 2 / 32 / 60, 6 * 10 / 32 / 60))
    Endpoint.objects.update(max_in_flight=2, requests_per_minute=3)
    judge.refresh_from_db()
    # Two at once would do in 6 to 30 seconds what 3 a minute do in two minutes.
    assert estimate_run(judge).minutes == ValueRange(2, 2)
    Endpoint.objects.update(requests_per_minute=None)
    judge.refresh_from_db()
    told = estimate_run(judge).minutes
    assert told is not None
    assert (told.low, told.high) == pytest.approx((6 / 60, 30 / 60))


def test_two_steps_are_two_requests_and_the_second_holds_the_first_again(judge: Judge) -> None:
    judge.mode = OutputMode.TWO_STEP
    told = estimate_run(judge, orders=RunOrders.AS_STORED, limit=1)
    prompt = prompt_of(judge)
    assert told.requests == ValueRange(2, 2)
    assert told.tokens_in == ValueRange(prompt * 0.8 * 2 + 100, prompt * 1.25 * 2 + 200)
    assert told.tokens_out == ValueRange(110, 250)


def test_twenty_earlier_calls_of_the_model_correct_the_rule(evaluation: Evaluation) -> None:
    for _ in range(7):
        make_comparison(evaluation)
    with llm_server() as server:
        first = make_llm_judge(evaluation, server.base_url, name="first")
        run_judge_here(first)
        assert Call.objects.filter(judge=first, state="answered").count() == 20
        other = make_llm_judge(evaluation, server.base_url, name="other", temperature=0.5)
        told = estimate_run(other)
    # The server counts a quarter of the prompt's characters in, without the schema and without 4 a message, and 20 out.
    assert told.tokens_out == ValueRange(20 * 20, 20 * 20)
    counted = first.runs.get().attempts.values_list("tokens_in", flat=True)
    assert told.tokens_in.low == pytest.approx(sum(number or 0 for number in counted), rel=0.01)
    assert told.tokens_in.high == pytest.approx(told.tokens_in.low, rel=0.01)
    assert "20 earlier calls" in told.assumptions[0]
    assert "as measured" in told.assumptions[-1]


def test_a_retry_is_estimated_over_the_chosen_calls_alone(judge: Judge, evaluation: Evaluation) -> None:
    for comparison in evaluation.comparisons.all():
        Call.objects.create(judge=judge, comparison=comparison, shown="as_stored", state="unreadable")
    Call.objects.create(judge=judge, comparison=comparison, shown="swapped", state="refused")
    told = estimate_run(judge, only_states=["unreadable"])
    assert told.calls == 3
    assert told.tokens_out == ValueRange(300, 600)
    assert estimate_run(judge, only_states=["unreadable", "refused"]).calls == 4


def test_a_rule_costs_nothing(evaluation: Evaluation) -> None:
    told = estimate_run(make_baseline_judge(evaluation))
    assert (told.calls, told.requests, told.cost) == (6, ValueRange(0, 0), ValueRange(0, 0))


def test_an_estimate_asks_no_more_queries_of_a_larger_selection(
    judge: Judge, evaluation: Evaluation, django_assert_max_num_queries: object
) -> None:
    for _ in range(60):
        make_comparison(evaluation)
    with django_assert_max_num_queries(20):  # type: ignore[operator]
        assert estimate_run(judge).calls == 126
