"""What a bias board costs, and how often its intervals hold with few clusters, beside a bootstrap of clusters.

python benchmarks/bias_board.py [items …] [--clusters 5 10 20 40 100] [--replicates 4000]
"""

import argparse
import os
import sys
from pathlib import Path
from statistics import median
from time import process_time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

from evaluations.stats.bias.board import bias_board
from evaluations.stats.bias.paired_sides import human_sides
from evaluations.stats.bias.strata import CountsByStratum, sum_by_stratum
from evaluations.stats.bias.stratified_shares import DIFFERENCE, linearised_interval, stratum_ratios, stratum_shares
from evaluations.stats.bias.traits import comparison_traits
from evaluations.stats.coding import TIE, IntArray
from evaluations.stats.estimates import Estimate
from evaluations.stats.items import Items
from evaluations.stats.votes import Votes, majority_of_votes

CANDIDATES, CATEGORIES = 6, 12
REPLICATES, RESAMPLES = 4_000, 500
DRAWN_OF_REPLICATES = 10  # one in so many is bootstrapped
EACH = np.array([1, 1, 1])


def items_of(n: int, clusters: int, rng: np.random.Generator) -> Items:
    a = rng.integers(0, CANDIDATES - 1, n)
    b = a + 1 + (rng.random(n) * (CANDIDATES - 1 - a)).astype(np.int64)
    characters = np.exp(rng.normal(6, 1, (2, n))).astype(np.int64)
    markup = rng.integers(0, 32, (2, n)) * (rng.random((2, n)) < 0.5)
    families = tuple("xy"[place % 2] for place in range(CANDIDATES))
    candidates, categories = (tuple(str(number) for number in range(count)) for count in (CANDIDATES, CATEGORIES))
    cluster, category = np.arange(n) * clusters // n, rng.integers(-1, CATEGORIES, n)
    query, stratum = np.arange(n), np.zeros(n, dtype=np.int64)
    return Items(cluster, category, categories, a, b, candidates, families, *characters, *markup, query, stratum)


def times(n: int, clusters: int, reviewed: float) -> list[float]:
    """Milliseconds of the process for what is worked out once, for what people said, and for a board.

    Two people vote on this share of the items.
    """
    rng = np.random.default_rng(0)
    as_stored = rng.choice(4, n, p=[0.4, 0.4, 0.15, 0.05]).astype(np.int8)
    swapped = np.where(rng.random(n) < 0.8, as_stored, rng.choice(3, n)).astype(np.int8)
    choice = np.where(as_stored == swapped, as_stored, TIE).astype(np.int8)
    item = np.repeat(np.sort(rng.permutation(n)[: int(n * reviewed)]), 2)
    votes = Votes(item, np.tile([0, 1], len(item) // 2), np.zeros_like(item), rng.choice(3, len(item)))
    majority = majority_of_votes(votes.item, votes.choice, n).choice
    items, spans = items_of(n, clusters, rng), []
    for _ in range(5):
        began = process_time()
        ground = comparison_traits(items)
        laid = process_time()
        people = human_sides(ground, majority, votes)
        heard = process_time()
        bias_board(ground, people, choice, as_stored, swapped, "x")
        spans.append((laid - began, heard - laid, process_time() - heard))
    return [1_000 * median(column) for column in zip(*spans, strict=True)]


def clusters_drawn(
    replicates: int, clusters: int, size: int, alike: float, chances: list[float], rng: np.random.Generator
) -> IntArray:
    """Cells of three × replicates × clusters, of about ``size`` entries; ``alike``: their intraclass correlation."""
    shape = (replicates, clusters)
    sizes = rng.integers(1, 2 * size, shape)
    p = (
        rng.dirichlet(np.array(chances) * (1 - alike) / alike, shape)
        if alike
        else np.broadcast_to(chances, (*shape, 3))
    )
    return np.moveaxis(rng.multinomial(sizes, p), -1, 0)


def claimed(numbers: list[Estimate], truth: float) -> float:
    intervals = [number.ci95 for number in numbers if number.ci95 is not None]
    return sum(low <= truth <= high for low, high in intervals) / len(intervals)


def held_by_bootstrap(cells: IntArray, part: IntArray, truth: float, rng: np.random.Generator) -> float:
    clusters, covered = cells.shape[2], 0
    drawn = max(1, cells.shape[1] // DRAWN_OF_REPLICATES)
    for replicate in range(drawn):
        times_drawn = rng.multinomial(clusters, np.full(clusters, 1 / clusters), RESAMPLES)
        of, n = times_drawn @ (part @ cells[:, replicate]), times_drawn @ cells[:, replicate].sum(axis=0)
        low, high = np.quantile(of / n, (0.025, 0.975))
        covered += low <= truth <= high
    return covered / drawn


def coverage(replicates: int, clusters: int, size: int, alike: float, chances: list[float]) -> str:
    """Of the share of the first cell, and of the difference of the first two, each beside the bootstrap."""
    rng = np.random.default_rng(1)
    cells = clusters_drawn(replicates, clusters, size, alike, chances, rng)
    table, starts = cells.reshape(3, -1), np.arange(replicates + 1) * clusters
    counts = CountsByStratum(sum_by_stratum(table, starts), table, starts)
    first, between = np.array([1, 0, 0]), np.array([1, -1, 0])
    share, difference = chances[0], chances[0] - chances[1]
    differences = [
        linearised_interval(Estimate(ratio.part / ratio.n, ratio.n), ratio.clusters, ratio.variance, DIFFERENCE)
        for ratio in stratum_ratios(counts, between, EACH)
    ]
    shares = (
        claimed(stratum_shares(counts, first, EACH, ""), share),
        held_by_bootstrap(cells, first, share, rng),
        claimed(differences, difference),
        held_by_bootstrap(cells, between, difference, rng),
    )
    return " | ".join(f"{100 * share:.1f}" for share in shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("items", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--clusters", type=int, nargs="+", default=[5, 10, 20, 40, 100])
    parser.add_argument("--replicates", type=int, default=REPLICATES)
    options = parser.parse_args()
    for n in options.items:
        for clusters, reviewed in ((n, 0.1), (n // 3, 0.1), (n // 3, 1.0)):
            once, people, board = times(n, clusters, reviewed)
            print(f"{n:,} items, {clusters:,} clusters, {reviewed:.0%} reviewed: ", end="")
            print(f"once {once:.0f} ms, once per aspect {people:.0f} ms, a board {board:.0f} ms")
    print("\n| clusters | entries in each | alike | chances | share | bootstrap | difference | bootstrap |")
    for clusters in options.clusters:
        for size, alike in ((1, 0.0), (5, 0.3), (20, 0.2)):
            for chances in ([0.5, 0.3, 0.2], [0.2, 0.1, 0.7]):
                result = coverage(options.replicates, clusters, size, alike, chances)
                print(f"| {clusters} | {size} | {alike} | {chances} | {result} |", flush=True)


if __name__ == "__main__":
    main()
