"""The file of list prices: every line has a source and a date, and a name that no line has stays without a price."""

from datetime import date
from urllib.parse import urlsplit

import pytest

from evaluations.llm.list_prices import FULL_PERCENT, ListPrice, find_list_price, load_list_prices

OPENAI = "https://api.openai.com/v1"


@pytest.mark.parametrize("line", load_list_prices(), ids=lambda line: line.models[0])
def test_every_line_is_dated_and_has_its_providers_page(line: ListPrice) -> None:
    assert date(2025, 1, 1) <= line.read_on <= date.today()
    assert urlsplit(line.source).scheme == "https"
    assert len(f"as of {line.read_on} ({line.source})") <= 300  # as it is stored with a price
    assert 0 < line.tokens_cached <= line.tokens_in <= line.tokens_out
    assert line.written_percent >= FULL_PERCENT
    assert line.batch_percent is None or 0 < line.batch_percent < FULL_PERCENT
    assert (line.long_from is None) == (line.long_in_percent == line.long_out_percent == FULL_PERCENT)
    assert line.most_tokens_out is None or line.most_tokens_out >= 4_096


def test_no_model_of_a_provider_is_in_two_lines() -> None:
    for line in load_list_prices():
        for name in line.models:
            named = [one for one in load_list_prices() if one.provider == line.provider and one.names(name.rstrip("*"))]
            assert named in ([line], []), name


@pytest.mark.parametrize(
    ("base_url", "model", "tokens_in"),
    [
        (OPENAI, "gpt-5", 1_250_000_000),
        (OPENAI, "gpt-5-2025-08-07", 1_250_000_000),
        (OPENAI, "gpt-5-mini", 250_000_000),
        ("https://api.anthropic.com/v1", "claude-haiku-4-5-20251001", 1_000_000_000),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "models/gemini-2.5-flash", 300_000_000),
        ("https://API.X.AI/v1", "grok-4.7", 2_000_000_000),
    ],
)
def test_a_model_is_found_at_its_provider_by_its_exact_or_dated_name(base_url: str, model: str, tokens_in: int) -> None:
    line = find_list_price(base_url, model)
    assert line is not None
    assert line.tokens_in == tokens_in


@pytest.mark.parametrize(
    ("base_url", "model"),
    [
        (OPENAI, "gpt-5-turbo"),
        (OPENAI, "ft:gpt-4.1-2025-04-14:mine"),
        (OPENAI, "gpt-4o-audio-preview"),
        (OPENAI, "GPT-5"),
        ("https://eu.api.openai.com/v1", "gpt-5"),  # another price there
        ("https://mine.openai.azure.com/openai/v1", "gpt-5"),
        ("https://openrouter.ai/api/v1", "openai/gpt-5"),
        ("http://localhost:11434/v1", "gpt-5"),
    ],
)
def test_what_no_line_names_has_no_list_price(base_url: str, model: str) -> None:
    assert find_list_price(base_url, model) is None


def test_a_long_prompt_costs_more_from_its_first_token_over_the_limit() -> None:
    line = find_list_price("https://api.anthropic.com/v1", "claude-haiku-5-5")
    assert line is not None
    assert (line.percents(100_000), line.percents(100_001)) == ((100, 100), (500, 500))
