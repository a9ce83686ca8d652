"""Comparisons to be tried in tests of win rates, ranking and length control."""

from collections.abc import Sequence

import numpy as np

from evaluations.stats.coding import IntArray
from evaluations.stats.contributions import FloatArray
from evaluations.stats.items import Items


def contest(
    a: Sequence[int] | IntArray,
    b: Sequence[int] | IntArray,
    cluster: Sequence[int] | IntArray | None = None,
    probability: Sequence[float] | FloatArray | None = None,
    longer_by: Sequence[int] | IntArray | None = None,
    names: int = 0,
) -> Items:
    """Comparisons of candidates by number: each a cluster of its own, drawn, of equal length, unless said otherwise."""
    n = len(a)
    candidates = tuple(f"candidate {number}" for number in range(max([names, *(one + 1 for one in (*a, *b))])))
    nothing = np.zeros(n, dtype=np.int64)
    return Items(
        cluster=np.arange(n) if cluster is None else np.asarray(cluster),
        category=nothing - 1,
        categories=(),
        candidate_a=np.asarray(a, dtype=np.int64),
        candidate_b=np.asarray(b, dtype=np.int64),
        candidates=candidates,
        families=("",) * len(candidates),
        characters_a=nothing + 1_000 + (0 if longer_by is None else np.asarray(longer_by)),
        characters_b=nothing + 1_000,
        markup_a=nothing,
        markup_b=nothing,
        probability=np.ones(n) if probability is None else np.asarray(probability, dtype=np.float64),
    )


def anything(seed: int, n: int, candidates: int, clusters: int) -> Items:
    """Random candidates on either side, clusters of any size in any order, unequal chances, a third not drawn."""
    rng = np.random.default_rng(seed)
    a = rng.integers(candidates, size=n)
    b = (a + rng.integers(1, candidates, size=n)) % candidates
    probability = np.where(rng.random(n) < 1 / 3, np.nan, rng.uniform(0.1, 1, n))
    return contest(a, b, rng.integers(clusters, size=n), probability, rng.integers(-900, 2_000, n))
