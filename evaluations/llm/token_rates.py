"""How many tokens a prompt must be, and whether a server that reports far fewer has cut it.

A tokenizer is a model's own, so the text alone gives wide bounds: half to one and a half times
a usual count for English, and a factor of five for Chinese. What a model at one endpoint was seen
to count narrows them, for each script by itself.

Three rules find a cut, and none looks at a prompt or a count that is small:

- the count is below what the most frugal tokenizers need for the text;
- after a few whole prompts, the count is far below what this model counted for such text;
- prompts of clearly different lengths all have one count, which no other prompt exceeds.
"""

import math
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from evaluations.domain.texts import Messages

# No server is known to cut below this. Smaller counts mean something else, such as uncached tokens only.
MIN_CUT_TOKENS: Final = 500
MIN_PROMPT_TOKENS: Final = 300
MIN_SAMPLES: Final = 4  # prompts
MAX_SAMPLES: Final = 64  # prompts
# A text differs from others of its script: prose, code and tables stay above this share of their common rate.
FAR_BELOW: Final = 0.74
DEVIATIONS: Final = 1.25  # of the uncertainty of the rates
# A server may count the tokens of its template, or add them after the cut.
CEILING_TOLERANCE: Final = 2
MIN_SIZES_AT_CEILING: Final = 3
CLEARLY_LONGER: Final = 0.08
# Test servers report round numbers for every prompt; a small context is a multiple of this.
CONTEXT_STEP: Final = 256
MIN_ODD_CEILING: Final = 1_000
MIN_CONTEXT: Final = 2_048
TEMPLATE_TOKENS: Final = 64


class TokenRate(NamedTuple):
    """Tokens for each that is usual, from the most frugal tokenizer in use to the most wasteful.

    Texts of one class differ, so a rate above ``sure`` that was learned from one is not assumed of another.
    """

    fewest: float
    usual: float
    most: float
    sure: float


# Measured with the vocabularies of twelve model families, with a margin at both ends.
RATES: Final = {
    "words": TokenRate(0.58, 1.05, 1.8, 0.97),
    "marks": TokenRate(0.55, 1.1, 2.2, 1.0),
    "accented": TokenRate(0.5, 1.2, 3.2, 1.2),
    "extended": TokenRate(0.4, 1.2, 3.2, 1.2),
    "vietnamese": TokenRate(0.3, 1.2, 3.2, 1.2),
    "digits": TokenRate(0.55, 1.15, 1.9, 1.0),
    "symbols": TokenRate(0.5, 1.1, 1.9, 0.5),
    "emoji": TokenRate(0.3, 1.1, 2.2, 0.3),
    "han": TokenRate(0.65, 1.2, 2.9, 2.9),
    "kana": TokenRate(0.65, 1.15, 2.6, 2.6),
    "hangul": TokenRate(0.7, 1.15, 2.9, 2.9),
    "cyrillic": TokenRate(0.55, 1.1, 2.3, 2.3),
    "greek": TokenRate(0.55, 1.2, 2.2, 2.2),
    "hebrew": TokenRate(0.5, 1.1, 2.3, 2.3),
    "arabic": TokenRate(0.55, 1.1, 2.4, 2.4),
    "devanagari": TokenRate(0.45, 1.3, 3.2, 3.2),
    "bengali": TokenRate(0.45, 1.3, 3.2, 3.2),
    "tamil": TokenRate(0.4, 1.3, 3.2, 3.2),
    "thai": TokenRate(0.45, 1.3, 3.2, 3.2),
    "other": TokenRate(0.25, 1.0, 3.2, 0.25),
    "repeated": TokenRate(0, 0.5, 4, 0),
}
# What a server adds to every prompt: a template, a schema, tools.
ADDED_RATE: Final = TokenRate(0, 40, 1_200, 0)
ALL_RATES: Final = (*RATES.values(), ADDED_RATE)
MESSAGE_OVERHEAD_TOKENS: Final = 4


@dataclass(frozen=True)
class TextProfile:
    """How much of each script a prompt holds, in tokens that are usual for it, one number for each of ``RATES``."""

    usual: tuple[float, ...]
    messages: int = 0

    @cached_property
    def amounts(self) -> tuple[float, ...]:
        """The amounts that the rates are multiplied by; the server's own overhead counts once."""
        return (*self.usual, 1.0)

    @property
    def fewest(self) -> float:
        """Tokens by the most frugal tokenizers."""
        return sum(amount * rate.fewest for amount, rate in zip(self.amounts, ALL_RATES, strict=True))

    @property
    def most(self) -> float:
        """Tokens by the most wasteful tokenizers, without what a server adds."""
        return sum(amount * rate.most for amount, rate in zip(self.usual, RATES.values(), strict=True))

    @property
    def of_messages(self) -> int:
        return self.messages * MESSAGE_OVERHEAD_TOKENS


def profile_prompt(messages: Messages, extra: str = "") -> TextProfile:
    """The profile of a prompt; ``extra`` is text sent with it, such as a schema."""
    return profile_text("\n".join([*(message["content"] for message in messages), extra]), len(messages))


# Blank runs, rulers, "=-=-=-" and laughter: a tokenizer may take any number of them for one token.
PERIODS: Final = (1, 3, 9, 10, 12, 14, 15, 16)  # bytes; each length up to 10 divides one of them
REPEATS: Final = 4
CONTINUATION: Final = bytes(range(0x80, 0xC0))
# The kind of a character by the first of its bytes in UTF-8, which names its part of Unicode.
PARTS: Final = (
    (b"a", range(ord("a"), ord("z") + 1)),
    (b"A", range(ord("A"), ord("Z") + 1)),
    (b"0", range(ord("0"), ord("9") + 1)),
    (b" ", b" \t"),
    (b"\n", b"\r\n"),
    (b"s", (0xC2, 0xCA, 0xCB, 0xCC, 0xE2)),  # signs, marks, arrows, mathematics, boxes
    (b"e", range(0xC3, 0xCA)),
    (b"g", range(0xCD, 0xD0)),
    (b"c", range(0xD0, 0xD4)),
    (b"o", (0xD4, 0xD5, *range(0xDC, 0xE0), 0xE1)),
    (b"h", (0xD6, 0xD7)),
    (b"r", range(0xD8, 0xDC)),
    (b"i", (0xE0,)),  # the scripts of India, Thai, Lao, Tibetan
    (b"H", range(0xE3, 0xEA)),
    (b"K", range(0xEA, 0xEE)),
    (b"f", (0xEE, 0xEF)),  # full-width forms
    (b"x", range(0xF0, 0x100)),  # emoji
)

SOUTH_ASIAN: Final = (
    (b"\xe0\xa4", b"\xe0\xa5"),  # Devanagari
    (b"\xe0\xa6", b"\xe0\xa7"),  # Bengali
    (b"\xe0\xae", b"\xe0\xaf"),  # Tamil
    (b"\xe0\xb8", b"\xe0\xb9"),  # Thai
)


def translation_table(kinds: Iterable[tuple[bytes, Iterable[int]]], otherwise: bytes) -> bytes:
    table = bytearray(otherwise * 256)
    for kind, first_bytes in kinds:
        for first in first_bytes:
            table[first] = kind[0]
    return bytes(table)


KIND_TABLE: Final = translation_table(PARTS, b".")
LETTER_TABLE: Final = translation_table([(b"a", first) for kind, first in PARTS if kind in b"aAeo"], b" ")


def profile_text(text: str, messages: int = 0) -> TextProfile:
    """Count by searching bytes: the characters of a long prompt are too many for a loop of ours."""
    encoded = text.encode("utf-8", "replace")
    data = collapse_repeats(encoded)
    kinds = data.translate(KIND_TABLE, CONTINUATION)
    count = kinds.count
    letters = b" " + data.translate(LETTER_TABLE, CONTINUATION)
    vietnamese = data.count(b"\xe1\xba") + data.count(b"\xe1\xbb")
    extended = sum(data.count(first) for first in (b"\xc4", b"\xc5", b"\xc6", b"\xc7", b"\xc8", b"\xc9"))
    ideographic_signs = data.count(b"\xe3\x80")
    kana = data.count(b"\xe3\x81") + data.count(b"\xe3\x82") + data.count(b"\xe3\x83")
    of_blocks = [sum(data.count(block) for block in blocks) for blocks in SOUTH_ASIAN]
    words = (
        0.7 * letters.count(b" a") + 0.02 * (count(b"a") + count(b"A")) + 2.5 * letters.count(b"a" * 9)  # long words
    )
    marks = (
        0.85 * (count(b".") - count(b".."))
        + 1.2 * (count(b"\n") - count(b"\n\n"))
        + 0.85 * count(b"  ")
        + 1.1 * count(b"aA")  # camelCase, and text that is no words
        + 0.55 * count(b"AA")
    )
    return TextProfile(
        (
            words,
            marks,
            0.9 * (count(b"e") - extended),
            0.9 * extended,
            0.9 * vietnamese,
            1.2 * (count(b"0") - count(b"00")),  # from one to three digits are a token
            1.5 * count(b"s"),
            2.5 * count(b"x"),
            0.65 * (count(b"H") - ideographic_signs - kana) + ideographic_signs + count(b"f"),
            0.65 * kana,
            0.8 * count(b"K"),
            0.38 * count(b"c"),
            0.6 * count(b"g"),
            0.7 * count(b"h"),
            0.5 * count(b"r"),
            *(0.7 * number for number in of_blocks),
            0.9 * (count(b"o") - vietnamese) + 0.7 * (count(b"i") - sum(of_blocks)),
            0.25 * (len(encoded) - len(data)),
        ),
        messages,
    )


def collapse_repeats(data: bytes) -> bytes:
    """Leave two or three of what is repeated at once four times or more, by the lengths in ``PERIODS``.

    A number is made of all bytes, so that one operation compares each with the one a period before.
    """
    number = int.from_bytes(data, "big")
    for period in PERIODS:
        same = (number ^ (number >> 8 * period)).to_bytes(len(data), "big")
        if bytes((REPEATS - 1) * period) in same:
            data = b"".join(find_repeat_gaps(data, same, period))
            number = int.from_bytes(data, "big")
    return data


def find_repeat_gaps(data: bytes, same: bytes, period: int) -> Iterator[bytes]:
    """``same`` is zero where a byte is that of a period before."""
    begin = 0
    for run in re.finditer(rb"\x00{%d,}" % ((REPEATS - 1) * period), same):
        left_out = (len(run[0]) // period - 1) * period
        yield data[begin : run.end() - left_out]
        begin = run.end()
    yield data[begin:]


@dataclass(frozen=True)
class CountedPrompt:
    profile: TextProfile
    tokens_in: int


def rate_variance(rate: TokenRate) -> float:
    """Half of what is between usual and most, which is taken as two standard deviations."""
    return (rate.most - rate.usual) / 2


@dataclass
class RateFit:
    """Recursive least squares of tokens on the amounts of each class.

    It starts at what is usual with the variance that tokenizers have, so that a class that was not
    seen keeps its uncertainty, and a prompt of several is split between them.
    """

    rates: list[float] = field(default_factory=lambda: [rate.usual for rate in ALL_RATES])
    covariance: list[list[float]] = field(
        default_factory=lambda: [
            [rate_variance(rate) ** 2 if row == column else 0.0 for column in range(len(ALL_RATES))]
            for row, rate in enumerate(ALL_RATES)
        ]
    )

    def add(self, seen: CountedPrompt) -> None:
        amounts, tokens = seen.profile.amounts, seen.tokens_in - seen.profile.of_messages
        weights = self.weigh(amounts)
        noise = 0.08 * seen.tokens_in + 20
        total = sum(map(math.prod, zip(amounts, weights, strict=True))) + noise**2
        missed = tokens - self.mean(amounts)
        for row, weight in enumerate(weights):
            if weight:
                self.rates[row] += weight * missed / total
                self.covariance[row] = [
                    old - weight * other / total for old, other in zip(self.covariance[row], weights, strict=True)
                ]

    def weigh(self, amounts: Sequence[float]) -> list[float]:
        kept = [(place, amount) for place, amount in enumerate(amounts) if amount]
        return [sum(row[place] * amount for place, amount in kept) for row in self.covariance]

    def mean(self, amounts: Sequence[float], *, sure: bool = False) -> float:
        """Tokens by the learned rates; ``sure``: by no more than their sure part."""
        return sum(
            amount * min(max(rate, bounds.fewest), bounds.sure if sure else bounds.most)
            for amount, rate, bounds in zip(amounts, self.rates, ALL_RATES, strict=True)
        )

    def deviation(self, amounts: Sequence[float]) -> float:
        return math.sqrt(max(0.0, sum(map(math.prod, zip(amounts, self.weigh(amounts), strict=True)))))


@dataclass
class TokenRates:
    """The observed token rates of one model at one endpoint.

    Counts include cached tokens. Only prompts that the server read whole are learned from; cut ones
    that slip in lower what is expected, which misses cuts and invents none.
    """

    seen: deque[CountedPrompt] = field(default_factory=lambda: deque(maxlen=MAX_SAMPLES))
    seen_cut: deque[CountedPrompt] = field(default_factory=lambda: deque(maxlen=MAX_SAMPLES))
    ceiling: int | None = None  # the count of every prompt that the server cuts
    fit: RateFit = field(default_factory=RateFit)
    learned: int = 0

    def learn(self, profile: TextProfile, tokens_in: int) -> None:
        if tokens_in < 1:
            return
        self.seen.append(CountedPrompt(profile, tokens_in))
        self.fit.add(self.seen[-1])
        self.learned += 1

    def expected(self, profile: TextProfile) -> tuple[float, float]:
        """The fewest and the most tokens that this prompt may be."""
        fewest, most = profile.fewest, profile.most + profile.of_messages + ADDED_RATE.most
        if self.learned < MIN_SAMPLES:
            return fewest, most
        around = DEVIATIONS * self.fit.deviation(profile.amounts)
        low = FAR_BELOW * (self.fit.mean(profile.amounts, sure=True) + profile.of_messages - around)
        return max(fewest, low), min(most, (self.estimate(profile) + around) / FAR_BELOW)

    def estimate(self, profile: TextProfile) -> float:
        return self.fit.mean(profile.amounts) + profile.of_messages

    def cut(self, profile: TextProfile, tokens_in: int) -> str | None:
        """Why the server must have cut this prompt, in a sentence; None if the count is plausible."""
        if self.ceiling is not None and tokens_in > self.ceiling + CEILING_TOLERANCE:
            self.ceiling = None
        if tokens_in < MIN_CUT_TOKENS or self.estimate(profile) < MIN_PROMPT_TOKENS:
            return None
        if self.ceiling is None and self.is_ceiling(profile, tokens_in):
            self.ceiling = tokens_in
            self.forget_ceiling(tokens_in)
        if tokens_in < self.expected(profile)[0]:
            self.seen_cut.append(CountedPrompt(profile, tokens_in))
            sent = round_to_two_digits(self.estimate(profile))
            return f"The server cut the prompt: it counted {tokens_in:,} tokens where about {sent:,} were sent."
        if self.ceiling is not None and self.ceiling - CEILING_TOLERANCE <= tokens_in < profile.most:
            return f"The server cut the prompt: it counted {tokens_in:,} tokens, as for other prompts of other lengths."
        return None

    def is_ceiling(self, profile: TextProfile, tokens_in: int) -> bool:
        """Whether prompts of three clearly different lengths have this count, and no prompt a higher one.

        Whole prompts do not meet this by chance: one must exceed the next by 8% of the count in all
        tokenizers, within two tokens of the highest count so far. It happened in none of 200,000 checks
        of real counts. Once a server is known to cut, a whole prompt of exactly this count is called cut.
        """
        has_higher_count = any(prompt.tokens_in > tokens_in + CEILING_TOLERANCE for prompt in self.seen)
        if not is_possible_ceiling(tokens_in) or has_higher_count:
            return False
        profiles = [profile]
        for prompt in (*self.seen, *self.seen_cut):
            if abs(prompt.tokens_in - tokens_in) <= CEILING_TOLERANCE:
                profiles.append(prompt.profile)
        if len(profiles) < MIN_SIZES_AT_CEILING or any(other.most < tokens_in for other in profiles):
            return False
        return count_distinct_sizes(profiles, CLEARLY_LONGER * tokens_in) >= MIN_SIZES_AT_CEILING

    def forget_ceiling(self, ceiling: int) -> None:
        """Learn anew from the prompts that the server read whole."""
        whole = [prompt for prompt in self.seen if abs(prompt.tokens_in - ceiling) > CEILING_TOLERANCE]
        self.seen.clear()
        self.seen.extend(whole)
        self.fit, self.learned = RateFit(), len(whole)
        for prompt in whole:
            self.fit.add(prompt)


def is_possible_ceiling(tokens_in: int) -> bool:
    """Whether a context may have this size, or a few tokens less or more."""
    above = (tokens_in + 8) % CONTEXT_STEP
    return tokens_in >= MIN_ODD_CEILING or above <= 10


def count_distinct_sizes(profiles: Iterable[TextProfile], step: float) -> int:
    """How many of the prompts are each longer than the one before by ``step`` tokens, whatever the tokenizer."""
    sizes = 0
    last: TextProfile | None = None
    for profile in sorted(profiles, key=lambda profile: sum(profile.usual)):
        if last is None or least_token_difference(last, profile) >= step:
            sizes, last = sizes + 1, profile
    return sizes


def least_token_difference(shorter: TextProfile, longer: TextProfile) -> float:
    """By how many tokens one prompt is longer than another with the tokenizer for which that is least."""
    classes = zip(shorter.usual, longer.usual, RATES.values(), strict=True)
    return sum((new - old) * (rate.fewest if new > old else rate.most) for old, new, rate in classes)


def round_to_two_digits(tokens: float) -> int:
    """The number rounded to two significant digits."""
    digits = max(0, math.floor(math.log10(max(tokens, 1))) - 1)
    return int(round(tokens, -digits))


def required_context(profile: TextProfile, max_tokens: int, rates: TokenRates | None = None) -> int:
    """The smallest power of two that holds the prompt and a reply of ``max_tokens``.

    There are few sizes, since Ollama loads its model anew for each.
    """
    most = profile.most + profile.of_messages + TEMPLATE_TOKENS
    if rates is not None:
        most = min(most, rates.expected(profile)[1])
    tokens = math.ceil(most) + max_tokens
    return max(MIN_CONTEXT, 1 << (tokens - 1).bit_length())
