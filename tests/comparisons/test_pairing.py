"""Which responses are held against each other."""

from itertools import pairwise

import pytest

from evaluations.comparisons.pairing.selectors import (
    build_comparison,
    pair_responses,
)
from evaluations.domain.errors import InputRefused
from evaluations.domain.pairing import Pairing, parse_pairing
from evaluations.models.comparisons import Candidate, Query, Response, draw_random_order
from evaluations.models.evaluations import Evaluation


def responses(*names: str) -> list[Response]:
    query = Query(key="q", evaluation=Evaluation(slug="study"))
    return [
        Response(query=query, candidate=Candidate(pk=ord(name[0]), name=name), sha256=f"{place}")
        for place, name in enumerate(names)
    ]


def named(pairs: list[tuple[Response, Response]]) -> list[str]:
    return [f"{one.candidate.name}-{other.candidate.name}" for one, other in pairs]


def test_all_pairs_are_of_different_candidates() -> None:
    assert named(pair_responses(responses("c", "a", "b", "a"), Pairing(), "seed")) == [
        "a-b",
        "a-c",
        "a-b",
        "a-c",
        "b-c",
    ]


def test_a_baseline_meets_each_of_the_others() -> None:
    assert named(pair_responses(responses("c", "a", "b"), parse_pairing("baseline:b"), "seed")) == ["a-b", "b-c"]


def test_random_pairs_are_the_same_for_the_same_seed_and_no_more_than_there_are() -> None:
    those = responses("a", "b", "c", "d")
    drawn = [named(pair_responses(those, parse_pairing("random:3"), seed)) for seed in ("x", "x", "y", "z")]
    assert [len(set(pairs)) for pairs in drawn] == [3, 3, 3, 3]
    assert drawn[0] == drawn[1]
    assert len({tuple(pairs) for pairs in drawn}) > 1
    assert len(pair_responses(those, parse_pairing("random:99"), "x")) == 6


@pytest.mark.parametrize("text", ["", "some", "baseline:", "random:", "random:0", "random:-1", "random:x", "all:x"])
def test_a_way_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputRefused):
        parse_pairing(text)


@pytest.mark.parametrize("text", ["all", "baseline:model:7b", "random:12"])
def test_a_way_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_pairing(text)) == text


def test_a_comparison_is_turned_where_its_first_candidate_sorts_last() -> None:
    first, second = responses("b", "a")
    comparison = build_comparison(first.query, first, second, origin="paired")
    assert (comparison.response_a, comparison.response_b, comparison.swapped) == (second, first, True)


def test_the_shuffle_fits_its_column_and_differs() -> None:
    drawn = [draw_random_order() for _ in range(100)]
    assert all(0 <= number < 2**63 for number in drawn)
    assert all(one != other for one, other in pairwise(drawn))
