"""Parts of a split: dealt by cluster, and nothing that shares a query is parted."""

import random

import pytest

from evaluations.domain.errors import InputRefused
from evaluations.domain.splits import SPLIT_MODULUS, Split, SplitPart, join_clusters, make_split

TRAIN, DEV, TEST = SplitPart


def test_a_part_depends_on_seed_and_cluster_alone() -> None:
    clusters = [f"q{number}" for number in range(200)]
    dealt = {cluster: Split("study").part_of(cluster) for cluster in clusters}
    random.Random(1).shuffle(clusters)
    assert {cluster: Split("study").part_of(cluster) for cluster in clusters} == dealt
    assert {cluster: Split("another").part_of(cluster) for cluster in clusters} != dealt


def test_the_parts_have_about_their_shares() -> None:
    dealt = [Split("study", 70, 10, 20).part_of(f"q{number}") for number in range(10_000)]
    # Of 10,000 the standard deviation of a share of 70 % is 46, of 10 % 30, of 20 % 40.
    assert abs(dealt.count(TRAIN) - 7_000) < 200
    assert abs(dealt.count(DEV) - 1_000) < 130
    assert abs(dealt.count(TEST) - 2_000) < 170


def test_every_place_is_in_exactly_one_part() -> None:
    split = Split("study", 33, 33, 34)
    edges = [split.bounds(part) for part in SplitPart]
    assert edges[0][0] == 0
    assert edges[-1][1] == SPLIT_MODULUS
    assert [high for _, high in edges[:-1]] == [low for low, _ in edges[1:]]
    assert split.part_at(SPLIT_MODULUS - 1) == TEST


def test_a_part_without_a_share_holds_nothing() -> None:
    split = Split("study", 90, 0, 10)
    assert split.parts == (TRAIN, TEST)
    assert DEV not in {split.part_of(f"q{number}") for number in range(1_000)}


def test_clusters_that_share_a_query_follow_the_first_of_them_through_others_too() -> None:
    # b and a share one text, b and d another, c stands with e.
    pairs = [("b", "1"), ("a", "1"), ("d", "2"), ("b", "2"), ("e", "3"), ("c", "3")]
    expected = {"a": "a", "b": "a", "d": "a", "c": "c", "e": "c"}
    assert join_clusters(pairs) == expected
    assert join_clusters(reversed(pairs)) == expected


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ({"train": "80", "dev": "10"}, "add up to 100 per cent, not 90"),
        ({"train": "100", "validation": "0"}, "not “validation”"),
        ({"train": "½", "test": "50"}, "whole number of per cent"),
    ],
)
def test_shares_that_make_no_whole_are_refused(shares: dict[str, str], words: str) -> None:
    with pytest.raises(InputRefused, match=words):
        make_split("study", shares)
