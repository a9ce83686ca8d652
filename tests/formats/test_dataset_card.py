"""Whatever people called things, the card is YAML and Markdown of ours alone."""

import pytest
import yaml
from markdown_it import MarkdownIt

from evaluations.domain.preferences import PreferenceRule
from evaluations.formats.dataset_card import (
    CardAgreement,
    CardConfig,
    CardFacts,
    CardRubric,
    dataset_card,
    quote_yaml,
    yaml_name,
)
from evaluations.formats.preferences import ExportCounts

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a\n---\nlicense: mit\n---",
    'a"\nlicense: mit',
    "```\n<b>out</b>\n```",
    "`</code><b>out</b>",
    "[x](javascript:alert(1))",
    "![x](https://example.org/pixel)",
    "a | b\n| --- |",
    "# heading",
    "- item\n1. item",
    "&lt;b&gt; &amp;",
    "a\u2028b\u0085c\ufeffd\x7f",
    "null",
    "{{ template }}",
)


def card(words: str) -> str:
    facts = CardFacts(
        name=words,
        description=words,
        rubrics=[CardRubric(words, words, [(words, words)])],
        people=1,
        judges=[(words, "llm", words, words)],
        policy=words,
        agreement=[CardAgreement(words, words, "kappa", "0.5", "", 3)],
        provenance={words: words},
    )
    config = CardConfig("preferences", "rows", {"train": ("a.parquet", 3)}, [f"- name: {yaml_name(words)}"])
    return dataset_card(facts, PreferenceRule(None, (words,)), [config], ExportCounts())


@pytest.mark.parametrize("words", HOSTILE)
def test_no_name_or_text_writes_html_links_or_headings_into_the_card(words: str) -> None:
    text = card(words).split("\n---\n", 1)[1]
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    kinds = {token.type for token in tokens} | {child.type for token in tokens for child in token.children or ()}
    assert not kinds & {"html_block", "html_inline", "link_open", "image"}
    headings = [tokens[place + 1].content for place, token in enumerate(tokens) if token.type == "heading_open"]
    assert len(headings) == 8


@pytest.mark.parametrize("words", HOSTILE)
def test_the_front_matter_says_what_we_say_and_the_name_as_it_is(words: str) -> None:
    matter = yaml.safe_load(card(words).split("\n---\n", 1)[0].removeprefix("---\n"))
    assert (matter["pretty_name"], matter["license"]) == (words, "unknown")
    assert matter["dataset_info"][0]["features"] == [{"name": words}]


@pytest.mark.parametrize("name", ["no", "on", "y", "null", "true", "1e3", "0x1", "a: b", "- a", "~", "", "12"])
def test_a_column_whose_name_yaml_could_read_otherwise_is_quoted(name: str) -> None:
    assert yaml.safe_load(yaml_name(name)) == name


def test_half_a_character_does_not_break_the_card() -> None:
    assert yaml.safe_load(quote_yaml("a\ud800")).startswith("a")
