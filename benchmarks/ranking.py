"""How long connectedness and Bradley–Terry scores of many candidates take on sparse structures.

    python benchmarks/ranking.py [--candidates 10000]

Prints a line of JSON for each structure: the pairs that met, and in processor seconds how long it takes to see whether
there are scores, to find them, and to say in words of a structure without scores why there are none.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np

from evaluations.stats.bradley_terry import WinTable, bradley_terry_scores, explain_missing_scores
from evaluations.stats.coding import IntArray

MATCHES = 20  # of each pair
SEED = 3

Pairs = tuple[IntArray, IntArray]


def chain(n: int) -> Pairs:
    return np.arange(n - 1), np.arange(1, n)


def star(n: int) -> Pairs:
    """All against one baseline."""
    return np.zeros(n - 1, dtype=np.int64), np.arange(1, n)


def near(n: int) -> Pairs:
    """Each against the next three, as where near ratings meet."""
    places = np.arange(n)
    return np.tile(places, 3), np.concatenate([(places + distance) % n for distance in (1, 2, 3)])


def grid(n: int) -> Pairs:
    side = int(n**0.5)
    places = np.arange(side * side).reshape(side, side)
    first = np.concatenate([places[:, :-1].ravel(), places[:-1].ravel()])
    return first, np.concatenate([places[:, 1:].ravel(), places[1:].ravel()])


def drawn(n: int) -> Pairs:
    """Five random others each."""
    rng = np.random.default_rng(SEED)
    first, second = chain(n)
    return np.concatenate([first, rng.integers(n, size=4 * n)]), np.concatenate([second, rng.integers(n, size=4 * n)])


STRUCTURES: Mapping[str, Callable[[int], Pairs]] = {
    "chain": chain,
    "star": star,
    "near ones": near,
    "grid": grid,
    "drawn": drawn,
}


def table(pairs: Pairs, candidates: int) -> WinTable:
    rng = np.random.default_rng(SEED)
    low, high = np.minimum(*pairs), np.maximum(*pairs)
    key = np.unique((low * candidates + high)[low != high])
    low, high = key // candidates, key % candidates
    strength = rng.normal(0, 0.5, candidates)
    wins = 1 + rng.binomial(MATCHES - 2, 1 / (1 + np.exp(strength[high] - strength[low])))
    return WinTable(low, high, candidates, np.full(len(low), float(MATCHES)), wins.astype(np.float64))


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return round(time.process_time() - started, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--candidates", type=int, default=10_000)
    candidates = parser.parse_args().candidates
    names = [f"candidate {number}" for number in range(candidates)]
    for name, structure in STRUCTURES.items():
        drawn = table(structure(candidates), candidates)
        lost = WinTable(
            drawn.first, drawn.second, candidates, drawn.matches, drawn.matches
        )  # the first of each pair won all
        result = {
            "structure": name,
            "pairs": len(drawn.first),
            "connected": seconds(lambda drawn=drawn: explain_missing_scores(drawn, names)),  # type: ignore[misc]
            "scores": seconds(lambda drawn=drawn: bradley_terry_scores(drawn)),  # type: ignore[misc]
            "no_scores": seconds(lambda lost=lost: explain_missing_scores(lost, names)),  # type: ignore[misc]
        }
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
