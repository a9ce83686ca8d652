"""The split of an evaluation's clusters into train, dev and test parts."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Final

from evaluations.domain.errors import InputRefused
from evaluations.domain.texts import cluster_number

# A prime: cluster numbers are folded into less than it, so that SQL and Python multiply within 63 bits.
SPLIT_MODULUS: Final = 2**31 - 1
ALL_PERCENT: Final = 100


class SplitPart(StrEnum):
    TRAIN = "train"
    DEV = "dev"
    TEST = "test"


@dataclass(frozen=True)
class Split:
    """How large the parts are, in per cent, and the seed that deals clusters out."""

    seed: str
    train: int = 80
    dev: int = 10
    test: int = 10

    @property
    def shares(self) -> Mapping[SplitPart, int]:
        return {SplitPart.TRAIN: self.train, SplitPart.DEV: self.dev, SplitPart.TEST: self.test}

    @property
    def parts(self) -> tuple[SplitPart, ...]:
        return tuple(part for part, share in self.shares.items() if share)

    @cached_property
    def multiplier(self) -> int:
        return 1 + hash_seed(self.seed, "multiplier") % (SPLIT_MODULUS - 1)

    @cached_property
    def offset(self) -> int:
        return hash_seed(self.seed, "offset") % SPLIT_MODULUS

    def bounds(self, part: SplitPart) -> tuple[int, int]:
        """The range of places of the clusters in this part, its end excluded."""
        order = list(self.shares)
        before = sum(self.shares[earlier] for earlier in order[: order.index(part)])
        return before * SPLIT_MODULUS // ALL_PERCENT, (before + self.shares[part]) * SPLIT_MODULUS // ALL_PERCENT

    def place_of(self, number: int) -> int:
        """The place of a cluster, from 0 to SPLIT_MODULUS - 1. `filter_by_split_part` computes the same in SQL."""
        return (number % SPLIT_MODULUS * self.multiplier + self.offset) % SPLIT_MODULUS

    def part_of(self, cluster: str) -> SplitPart:
        return self.part_at(self.place_of(cluster_number(cluster)))

    def part_at(self, place: int) -> SplitPart:
        return next(part for part in self.shares if self.bounds(part)[0] <= place < self.bounds(part)[1])

    def in_words(self) -> str:
        shares = ", ".join(f"{part} {share} %" for part, share in self.shares.items())
        return f"{shares}, dealt by cluster with the seed “{self.seed}”"


def hash_seed(seed: str, purpose: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{purpose}\0{seed}".encode()).digest()[:8], "big")


def make_split(seed: str, shares: Mapping[str, str]) -> Split:
    """A split from shares in per cent by the names of the parts. Raises InputRefused."""
    percents: dict[str, int] = {}
    for name, share in shares.items():
        if name not in list(SplitPart):
            raise InputRefused(f"A split has the parts {', '.join(SplitPart)}, not “{name}”.")
        if not share.isascii() or not share.isdigit():
            raise InputRefused(f"The share of {name} is a whole number of per cent, not “{share}”.")
        percents[name] = int(share)
    if sum(percents.values()) != ALL_PERCENT:
        raise InputRefused(f"The shares of a split add up to {ALL_PERCENT} per cent, not {sum(percents.values())}.")
    return Split(seed, *(percents.get(part, 0) for part in SplitPart))


def join_clusters(sharing: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The leader of each cluster, from pairs of cluster and text: clusters that share a text have the same leader.

    It is the one whose name sorts first among all clusters that are connected by shared texts.
    """
    leader: dict[str, str] = {}
    having: dict[str, list[str]] = defaultdict(list)
    for cluster, text in sharing:
        leader[cluster] = cluster
        having[text].append(cluster)
    for clusters in having.values():
        leaders = [find_leader(leader, cluster) for cluster in clusters]
        for own in leaders:
            leader[own] = min(leaders)
    return {cluster: find_leader(leader, cluster) for cluster in leader}


def find_leader(leader: dict[str, str], cluster: str) -> str:
    while leader[cluster] != cluster:
        leader[cluster] = cluster = leader[leader[cluster]]
    return cluster
