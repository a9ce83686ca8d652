"""A filter as people write it: in an address, in JSON, in words."""

from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.domain.errors import InputRefused
from evaluations.domain.filters import ComparisonFilter, parse_filter

WORD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)


def read(query: str) -> ComparisonFilter:
    told = {name: values if name == "tag" else values[0] for name, values in parse_qs(query).items()}
    return parse_filter(told)


@given(WORD, WORD, st.lists(WORD.filter(bool), max_size=3, unique=True), st.booleans(), st.integers(0, 10**9))
def test_a_filter_is_the_same_after_an_address_and_after_json(
    text: str, category: str, tags: list[str], flagged: bool, source: int
) -> None:
    wanted = ComparisonFilter(
        text=text, category=category, tags=tuple(tags), flagged=flagged, source=source, reviews="none"
    )
    assert read(wanted.as_query()) == wanted
    assert parse_filter(wanted.as_json()) == wanted


def test_an_address_can_be_read_by_people() -> None:
    wanted = ComparisonFilter(
        text="capital", candidate="gpt", aspect="clarity", choice="tie", rater="human:ann", tags=("hard",)
    )
    assert wanted.as_query() == ("q=capital&candidate=gpt&rater=human%3Aann&aspect=clarity&choice=tie&tag=hard")
    assert wanted.in_words() == (
        "its texts contain capital and a model is “gpt” and “ann” chose tie on clarity and it is tagged “hard”"
    )


def test_a_filter_that_says_nothing_is_none() -> None:
    assert not ComparisonFilter()
    assert parse_filter({"q": "", "tag": []}) == ComparisonFilter()


@pytest.mark.parametrize(
    "told",
    [
        {"colour": "red"},
        {"reviews": "x"},
        {"origin": "x"},
        {"disagreement": "x"},
        {"choice": "A"},
        {"choice": "C", "aspect": "clarity"},
        {"choice": "differs", "aspect": "clarity"},
        {"choice": "split", "aspect": "clarity", "rater": "human:ann"},
        {"rater": "ann"},
        {"against": "beta"},
        {"candidate": "beta", "against": "beta"},
        {"import": "-1"},
        {"q": "x" * 301},
        {"q": ["list"]},
        {"tag": [f"t{number}" for number in range(11)]},
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(told: dict[str, object]) -> None:
    with pytest.raises(InputRefused):
        parse_filter(told)


def test_filters_saved_by_earlier_versions_keep_their_meaning() -> None:
    assert parse_filter({"disagreement": "settled"}) == parse_filter({"disagreement": "resolved"})
