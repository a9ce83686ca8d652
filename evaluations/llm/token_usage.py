"""The token counts of a server, in whichever form it gives them.

Reasoning tokens are billed as output. Some servers count them within the completion (OpenAI, DeepSeek, Groq), some
in addition to it (xAI, Google): the total shows which; without a total, more reasoning than completion does.
"""

import re
from collections.abc import Mapping
from typing import Final

from evaluations.domain.money import NANO_PER_USD
from evaluations.llm.exchange import Usage

MAX_TOKEN_COUNT: Final = 2**31 - 1
COUNT_AS_TEXT: Final = re.compile(r"[0-9]{1,11}(?:\.0+)?")
INPUT_TOKEN_NAMES: Final = ("prompt_tokens", "input_tokens", "promptTokenCount")
OUTPUT_TOKEN_NAMES: Final = ("completion_tokens", "output_tokens", "candidatesTokenCount")
TOTAL_TOKEN_NAMES: Final = ("total_tokens", "totalTokenCount")
REASONING_TOKEN_NAMES: Final = ("reasoning_tokens", "thoughtsTokenCount", "thinking_tokens")
INPUT_DETAIL_NAMES: Final = ("prompt_tokens_details", "input_tokens_details")
OUTPUT_DETAIL_NAMES: Final = ("completion_tokens_details", "output_tokens_details")
CACHED_TOKEN_NAMES: Final = ("cached_tokens", "prompt_cache_hit_tokens", "cachedContentTokenCount")


def parse_usage(usage: Mapping[str, object], cost: int | None = None) -> Usage:
    """The counts of an OpenAI-like ``usage`` object; ``cost`` in nano-USD is passed on."""
    tokens_in, out = first_token_count(usage, INPUT_TOKEN_NAMES), first_token_count(usage, OUTPUT_TOKEN_NAMES)
    total, reasoning = first_token_count(usage, TOTAL_TOKEN_NAMES), parse_reasoning_tokens(usage)
    if tokens_in is None and total is not None and out is not None:
        additional = reasoning or 0 if (reasoning or 0) > out else 0
        tokens_in = max(total - out - additional, 0)
    billed = billed_output_tokens(out, reasoning, tokens_in, total)
    if reasoning is None and billed is not None and out is not None and billed > out:
        reasoning = billed - out
    return Usage(
        tokens_in=tokens_in,
        tokens_out=billed,
        tokens_cached=nested_token_count(usage, INPUT_DETAIL_NAMES, CACHED_TOKEN_NAMES),
        tokens_reasoning=reasoning,
        cost=cost,
    )


def billed_output_tokens(
    out: int | None, reasoning: int | None, tokens_in: int | None, total: int | None
) -> int | None:
    """The largest of the counts that the total allows: completion, total − prompt, completion + reasoning.

    >>> billed_output_tokens(20, 700, 100, 820)
    720
    >>> billed_output_tokens(720, 700, 100, 820)
    720
    >>> billed_output_tokens(20, 700, 100, None)
    720
    """
    counts = [] if out is None else [out]
    if total is not None and tokens_in is not None and total > tokens_in:
        counts.append(total - tokens_in)
    # More reasoning than output cannot be included in it.
    if reasoning is not None and (out is None or reasoning > out):
        counts.append((out or 0) + reasoning)
    return min(max(counts), MAX_TOKEN_COUNT) if counts else None


def parse_reasoning_tokens(usage: Mapping[str, object]) -> int | None:
    return nested_token_count(usage, OUTPUT_DETAIL_NAMES, REASONING_TOKEN_NAMES)


def nested_token_count(
    usage: Mapping[str, object], detail_names: tuple[str, ...], names: tuple[str, ...]
) -> int | None:
    """The first count with one of these names, in an object of details or next to them."""
    objects = (*(object_member(usage, detail) for detail in detail_names), usage)
    counts = (first_token_count(fields, names) for fields in objects)
    return next((count for count in counts if count is not None), None)


def parse_nano_usd(value: object) -> int | None:
    """Nano-USD from a server's amount in USD; None if it is none."""
    amount = parse_amount(value)
    return None if amount is None else round(amount * NANO_PER_USD)


def parse_amount(value: object) -> float | None:
    """A non-negative amount, from a number or from text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        amount = float(value)
    except ValueError:
        return None
    return amount if 0 <= amount < 1e6 else None


def first_token_count(usage: Mapping[str, object], names: tuple[str, ...]) -> int | None:
    return next((count for name in names if (count := parse_token_count(usage.get(name))) is not None), None)


def parse_token_count(value: object) -> int | None:
    """A count of tokens, also if written as 900.0 or as "900"."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and COUNT_AS_TEXT.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and 0 <= value <= MAX_TOKEN_COUNT else None


def object_member(body: Mapping[str, object], name: str) -> Mapping[str, object]:
    inside = body.get(name)
    return inside if isinstance(inside, Mapping) else {}
