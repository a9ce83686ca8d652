import json
import re
from itertools import pairwise, product
from pathlib import Path

import pytest

from evaluations.domain.choices import ShownOrder
from evaluations.domain.texts import Messages, PairTexts
from evaluations.judge_prompts.builtin_rubrics import SIX_ASPECT
from evaluations.judge_prompts.prompt_builder import build_messages
from evaluations.llm.token_rates import (
    MIN_CUT_TOKENS,
    RATES,
    TextProfile,
    TokenRates,
    collapse_repeats,
    profile_prompt,
    profile_text,
    required_context,
    round_to_two_digits,
)
from tests.llm.counted_texts import NUMBER_KINDS, SAMPLE_SENTENCES, TOKEN_COUNTS, TOKENIZER_FAMILIES, text_of_kind

pytestmark = pytest.mark.any_database

KINDS = (*SAMPLE_SENTENCES, *NUMBER_KINDS)
PROFILES = {sample: profile_text(text_of_kind(*sample)) for sample in TOKEN_COUNTS}
ENGLISH, CHINESE = ("English", 150, 5), ("Chinese", 150, 5)


def counted(family: str, sample: tuple[str, int, int]) -> int:
    return TOKEN_COUNTS[sample][TOKENIZER_FAMILIES.index(family)]


def learned_from(family: str, *kinds: str, times: int = 3) -> TokenRates:
    """Rates of this model after whole prompts of these kinds, of three sizes each."""
    rates = TokenRates()
    for _ in range(times):
        for sample in TOKEN_COUNTS:
            if sample[0] in kinds:
                rates.learn(PROFILES[sample], counted(family, sample))
    return rates


def amount(profile: TextProfile, name: str) -> float:
    return profile.usual[list(RATES).index(name)]


# ---- no false alarm ------------------------------------------------------------------------


@pytest.mark.parametrize("family", TOKENIZER_FAMILIES)
def test_no_whole_prompt_is_called_cut_before_anything_is_learned(family: str) -> None:
    for sample in TOKEN_COUNTS:
        assert TokenRates().cut(PROFILES[sample], counted(family, sample)) is None, sample


@pytest.mark.parametrize("family", TOKENIZER_FAMILIES)
def test_no_whole_prompt_is_called_cut_after_prompts_of_another_kind(family: str) -> None:
    for kind in KINDS:
        rates = learned_from(family, kind, times=7)
        for sample in TOKEN_COUNTS:
            assert rates.cut(PROFILES[sample], counted(family, sample)) is None, (kind, sample)


@pytest.mark.parametrize("family", TOKENIZER_FAMILIES)
def test_no_whole_prompt_is_called_cut_while_kinds_are_mixed(family: str) -> None:
    rates = TokenRates()
    for one, other in product(TOKEN_COUNTS, [(kind, 40, 0) for kind in KINDS]):
        profile = profile_text(f"{text_of_kind(*one)}\n\n{text_of_kind(*other)}")
        tokens_in = counted(family, one) + counted(family, other)
        assert rates.cut(profile, tokens_in) is None, (one, other)
        rates.learn(profile, tokens_in)


def test_a_small_prompt_or_a_small_count_is_never_called_cut() -> None:
    rates = learned_from("Llama", "English")
    assert rates.cut(profile_text(text_of_kind("English", 12)), 40) is None
    assert rates.cut(PROFILES[ENGLISH], 499) is None
    assert rates.cut(PROFILES[ENGLISH], 500) is not None
    assert rates.cut(PROFILES[ENGLISH], 0) is None


def test_a_missing_count_teaches_nothing() -> None:
    rates = TokenRates()
    rates.learn(PROFILES[ENGLISH], 0)
    assert rates == TokenRates()


def test_a_count_above_the_estimate_is_never_called_cut() -> None:
    rates = learned_from("Llama", *KINDS)
    assert all(rates.cut(PROFILES[sample], 5 * counted("Llama", sample)) is None for sample in TOKEN_COUNTS)


def test_tokens_that_a_server_adds_to_every_prompt_are_not_expected_to_grow_with_the_prompt() -> None:
    """1,200 tokens of tools with prompts of 200: seven times the text, which says nothing of a long prompt."""
    rates = TokenRates()
    for first in range(20):
        rates.learn(profile_text(text_of_kind("English", 10, first)), 1_400)
    assert rates.cut(PROFILES[ENGLISH], counted("Llama", ENGLISH)) is None


def test_both_orders_of_pairs_of_one_length_are_no_ceiling() -> None:
    rates = TokenRates()
    for first in range(6):
        for _ in ("as stored", "swapped"):
            profile = profile_text(text_of_kind("English", 90, first))
            assert rates.cut(profile, 1_785) is None
            rates.learn(profile, 1_785)
    assert rates.ceiling is None


def test_an_answer_that_repeats_itself_teaches_nothing_of_other_text() -> None:
    """谢谢 2,000 times is 2,000 tokens of a profile that holds almost none of it."""
    rates = learned_from("Qwen", "Chinese", times=1)
    for _ in range(5):
        rates.learn(profile_text(text_of_kind("Chinese", 40) + "谢谢" * 2_000), 790 + 2_000)
    assert rates.cut(PROFILES[CHINESE], counted("Qwen", CHINESE)) is None


def test_a_server_that_reports_one_number_for_every_prompt_cuts_none() -> None:
    """600 is no size of a context, and twenty sentences, at most 710 tokens, have as many as the rest."""
    for number in (600, 1_024):
        rates = TokenRates()
        for parts in (20, 30, 36, 42):
            profile = profile_text(text_of_kind("English", parts))
            assert rates.cut(profile, number) is None
            rates.learn(profile, number)


# ---- cuts that are found -------------------------------------------------------------------


def test_ollamas_default_context_is_found_at_the_first_prompt() -> None:
    profile = profile_prompt([{"role": "user", "content": text_of_kind("English", 400)}])
    assert TokenRates().cut(profile, 7_937) is None
    reason = TokenRates().cut(profile, 2_050)
    assert reason is not None
    assert re.fullmatch(
        r"The server cut the prompt: it counted 2,050 tokens where about [678],\d00 were sent\.", reason
    )


@pytest.mark.parametrize("family", TOKENIZER_FAMILIES)
def test_a_quarter_of_an_english_prompt_is_found_before_anything_is_learned(family: str) -> None:
    assert TokenRates().cut(PROFILES[ENGLISH], counted(family, ENGLISH) // 4) is not None


@pytest.mark.parametrize("family", TOKENIZER_FAMILIES)
@pytest.mark.parametrize("kind", ["English", "Chinese", "Japanese", "Korean", "Russian", "Arabic", "Hindi", "code"])
def test_half_a_prompt_is_found_after_six_whole_ones_of_its_script(family: str, kind: str) -> None:
    rates, sample = learned_from(family, kind, times=2), (kind, 150, 5)
    assert rates.cut(PROFILES[sample], counted(family, sample) // 2) is not None


def test_a_wasteful_tokenizer_hides_a_cut_until_its_rate_is_learned() -> None:
    """SmolLM takes 1.7 tokens for a character that others take for 0.65: a third of them is what Qwen needs."""
    third = counted("SmolLM", CHINESE) // 3
    assert third < counted("Qwen", CHINESE)
    assert TokenRates().cut(PROFILES[CHINESE], third) is None
    assert learned_from("SmolLM", "English").cut(PROFILES[CHINESE], third) is None
    assert learned_from("SmolLM", "English", "Chinese").cut(PROFILES[CHINESE], third) is not None


def test_a_script_is_learned_from_prompts_that_hold_english_too() -> None:
    rates = TokenRates()
    for parts in (40, 90, 150):
        sample = next(one for one in TOKEN_COUNTS if one[:2] == ("Chinese", parts))
        profile = profile_text(f"{text_of_kind('English', 40)}\n{text_of_kind(*sample)}")
        for _ in range(2):
            rates.learn(profile, counted("SmolLM", sample) + 802)
    assert rates.cut(PROFILES[CHINESE], counted("SmolLM", CHINESE) // 2) is not None


# ---- ceilings ------------------------------------------------------------------------------


def smollm_at(ceiling: int, rates: TokenRates, *parts: int) -> list[str | None]:
    """What is said of Chinese prompts of these lengths at a server that keeps so many tokens."""
    said = []
    for number in parts:
        profile, tokens_in = profile_text(text_of_kind("Chinese", number)), min(ceiling, 53 * number)
        said.append(rates.cut(profile, tokens_in))
        if said[-1] is None:
            rates.learn(profile, tokens_in)
    return said


CEILING_SAID = "The server cut the prompt: it counted 2,050 tokens, as for other prompts of other lengths."


def test_three_lengths_with_one_count_are_a_ceiling_for_all_that_follow() -> None:
    """53 tokens a sentence: 50 sentences are 2,650 tokens, 40 are 2,120, and 30 fit."""
    rates = TokenRates()
    assert smollm_at(2_050, rates, 50, 65, 85, 85, 40, 30) == [None, None, *[CEILING_SAID] * 3, None]
    assert rates.ceiling == 2_050


def test_a_ceiling_does_not_teach_a_low_rate() -> None:
    """Were the two cut prompts learned from, a Chinese prompt would be expected to have half its tokens."""
    rates = TokenRates()
    smollm_at(2_050, rates, 50, 65, 85)
    assert (rates.learned, len(rates.seen), rates.fit) == (0, 0, TokenRates().fit)


def test_prompts_far_too_long_show_the_ceiling_for_one_that_is_little_too_long() -> None:
    """400, 200 and 134 sentences are 7,900, 4,000 and 2,650 tokens: of the last, three quarters are left."""
    little_too_long = profile_text(text_of_kind("English", 134))
    assert TokenRates().cut(little_too_long, 2_050) is None
    rates = TokenRates()
    for parts in (400, 200):
        assert rates.cut(profile_text(text_of_kind("English", parts)), 2_050) is not None
    assert rates.cut(little_too_long, 2_050) == CEILING_SAID


def test_a_template_may_move_a_ceiling_by_a_token_or_two() -> None:
    rates = TokenRates()
    for tokens_in, parts in ((2_048, 50), (2_050, 65)):
        rates.learn(profile_text(text_of_kind("Chinese", parts)), tokens_in)
    assert rates.cut(profile_text(text_of_kind("Chinese", 85)), 2_049) is not None


def test_two_lengths_with_one_count_are_chance() -> None:
    rates = TokenRates()
    assert smollm_at(2_050, rates, 50, 65, 65, 50) == [None] * 4


def test_lengths_that_differ_little_are_no_ceiling() -> None:
    """40, 41 and 42 sentences differ by less than 8%."""
    rates = TokenRates()
    assert smollm_at(2_050, rates, 40, 41, 42, 43) == [None] * 4


def test_a_count_below_the_highest_is_no_ceiling() -> None:
    rates = TokenRates()
    rates.learn(PROFILES[CHINESE], counted("SmolLM", CHINESE))
    profiles = [profile_text(text_of_kind("Chinese", parts)) for parts in (50, 65, 85)]
    for profile in profiles[:2]:
        rates.learn(profile, 4_000)
    assert rates.cut(profiles[2], 4_000) is None


def test_a_higher_count_ends_a_ceiling() -> None:
    """Somebody gave the server a larger context."""
    rates = TokenRates()
    smollm_at(2_050, rates, 50, 65, 85)
    assert smollm_at(4_100, rates, 60, 50) == [None, None]
    assert rates.ceiling is None


# ---- profiles ------------------------------------------------------------------------------


def test_each_script_has_its_class() -> None:
    samples = {
        "words": "bridge",
        "marks": "();",
        "digits": "1234",
        "accented": "éàü",
        "extended": "łżő",
        "vietnamese": "ệạữ",
        "symbols": "→∑│",
        "emoji": "🎉",
        "han": "桥梁",
        "kana": "はしハシ",
        "hangul": "다리",
        "cyrillic": "мост",
        "greek": "γέφυρα",
        "hebrew": "גשר",
        "arabic": "جسر",
        "devanagari": "पुल",
        "bengali": "সেতু",
        "tamil": "பாலம்",
        "thai": "สะพาน",
        "other": "ხიდი",
        "repeated": "~" * 50,
    }
    assert samples.keys() == RATES.keys()
    for name, text in samples.items():
        assert amount(profile_text(text), name) > 0, name
    for name in samples.keys() - {"accented", "extended", "vietnamese", "other", "repeated"}:
        held = [other for other in RATES if amount(profile_text(samples[name]), other)]
        assert held == [name], name


def test_a_profile_is_worked_by_hand() -> None:
    """Two words of eleven letters, one dot, one line end; five digits are three pairs or less."""
    profile = profile_text("hello wörlds.\n12345")
    assert amount(profile, "words") == pytest.approx(0.7 * 2 + 0.02 * 10)
    assert amount(profile, "marks") == pytest.approx(0.85 + 1.2)
    assert amount(profile, "digits") == pytest.approx(1.2 * 3)
    assert amount(profile, "accented") == pytest.approx(0.9)


def test_what_is_sent_with_a_prompt_counts() -> None:
    messages: Messages = [{"role": "system", "content": "Judge."}, {"role": "user", "content": "桥"}]
    profile = profile_prompt(messages, '{"type": "object"}')
    assert profile.messages == 2
    assert amount(profile, "words") > amount(profile_prompt(messages), "words")


def test_a_lone_surrogate_is_counted_as_something() -> None:
    assert profile_text("\ud800").fewest > 0


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a----------b", "a--b"),
        ("哈哈哈哈哈哈哈，好", "哈哈，好"),
        ("ababab", "ababab"),
        ("", ""),
        ("a\n\n\n\n\n\n\n\nb", "a\n\nb"),
    ],
)
def test_what_is_repeated_at_once_is_left_out(text: str, left: str) -> None:
    assert collapse_repeats(text.encode()).decode() == left


@pytest.mark.parametrize(
    "unit", ["=-", "|---", "1234567890", "\r\n", " \n", "   \n    \n", "ありがとう", "&nbsp;", "Hello", "😂"]
)
def test_a_loop_needs_few_tokens(unit: str) -> None:
    """Tokenizers take up to sixteen of the first two for a token."""
    assert profile_text(unit * 1_000).fewest < 60


def test_text_without_repeats_stays_as_it_is() -> None:
    for kind in SAMPLE_SENTENCES:
        if kind != "code":
            data = text_of_kind(kind, 12).encode()
            assert collapse_repeats(data) == data


# ---- contexts ------------------------------------------------------------------------------


def test_a_context_holds_the_prompt_and_the_reply_of_every_family() -> None:
    for sample, family in product(TOKEN_COUNTS, TOKENIZER_FAMILIES):
        context = required_context(PROFILES[sample], 1_000)
        assert counted(family, sample) + 1_000 <= context
        assert context >= 2_048
        assert context & (context - 1) == 0


def test_a_known_model_needs_a_smaller_context() -> None:
    """2,624 tokens of Chinese are up to 8,700 for a tokenizer that nobody has seen."""
    rates = learned_from("DeepSeek", "Chinese")
    assert required_context(PROFILES[CHINESE], 500, rates) < required_context(PROFILES[CHINESE], 500)
    assert required_context(PROFILES[CHINESE], 500, rates) >= counted("DeepSeek", CHINESE) + 500


def test_a_longer_prompt_never_needs_a_smaller_context() -> None:
    sizes = [required_context(profile_text(text_of_kind("English", parts)), 500) for parts in range(1, 400, 20)]
    assert all(one <= other for one, other in pairwise(sizes))
    assert sizes[0] == 2_048
    assert sizes[-1] == 16_384


@pytest.mark.parametrize(("tokens", "shown"), [(7_937, 7_900), (12_345, 12_000), (640, 640), (96, 96)])
def test_an_estimate_is_shown_with_two_digits(tokens: float, shown: int) -> None:
    assert round_to_two_digits(tokens) == shown


# ---- real prompts --------------------------------------------------------------------------

PIECE = re.compile(r" ?[A-Za-z]{1,7}|\d{1,3}|\s+|[^\sA-Za-z\d]")


def test_real_prompts_are_whole_and_their_halves_are_cut(acceptance_data: Path) -> None:
    """The tokens are counted by a simple rule: words by seven letters, digits by three, each sign by itself."""
    rows = json.loads((acceptance_data / "llmbar" / "Dataset" / "LLMBar" / "Natural" / "dataset.json").read_text())
    rates, found, whole, halves = TokenRates(), 0, 0, 0
    for row in rows:
        texts = PairTexts(
            [{"role": "user", "content": row["input"]}],
            [{"role": "assistant", "content": row["output_1"] * 3}],
            [{"role": "assistant", "content": row["output_2"] * 3}],
        )
        messages = build_messages(SIX_ASPECT, texts, ShownOrder.AS_STORED, "key")
        tokens_in = sum(len(PIECE.findall(message["content"])) for message in messages)
        profile = profile_prompt(messages)
        assert rates.cut(profile, tokens_in) is None
        rates.learn(profile, tokens_in)
        whole += 1
        if tokens_in // 2 >= MIN_CUT_TOKENS:
            halves += 1
            found += rates.cut(profile, tokens_in // 2) is not None
    assert whole == 100
    assert halves >= 60
    assert found >= 0.9 * halves
