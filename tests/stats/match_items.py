"""Items for tests of win rates, rankings and length control."""

from collections.abc import Sequence

import numpy as np

from evaluations.stats.coding import IntArray
from evaluations.stats.items import Items


def make_match_items(
    a: Sequence[int] | IntArray,
    b: Sequence[int] | IntArray,
    cluster: Sequence[int] | IntArray | None = None,
    stratum: Sequence[int] | IntArray | None = None,
    longer_by: Sequence[int] | IntArray | None = None,
    names: int = 0,
    query: Sequence[int] | IntArray | None = None,
) -> Items:
    """Comparisons of candidates by number: each a query and a cluster of its own, all of one stratum and of equal

    length, unless said otherwise.
    """
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
        query=np.arange(n) if query is None else np.asarray(query),
        stratum=nothing if stratum is None else np.asarray(stratum),
    )


def random_match_items(seed: int, n: int, candidates: int, clusters: int) -> Items:
    """Random candidates on either side, clusters and queries of any size in any order, ten strata."""
    rng = np.random.default_rng(seed)
    a = rng.integers(candidates, size=n)
    b = (a + rng.integers(1, candidates, size=n)) % candidates
    cluster, longer_by = rng.integers(clusters, size=n), rng.integers(-900, 2_000, n)
    return make_match_items(
        a, b, cluster, rng.integers(10, size=n), longer_by, query=3 * cluster + rng.integers(3, size=n)
    )
