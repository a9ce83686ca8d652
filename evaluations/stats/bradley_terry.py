"""Bradley–Terry scores from a table of wins (Bradley and Terry 1952): P(i beats j) = 1 ÷ (1 + exp(sⱼ − sᵢ)).

A tie is half a win for each. Scores are log odds that sum to 0. Tables may be many at once, one for each
resample: whatever has pairs as its last axis, (…, pairs), gives scores (…, candidates).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.coding import BoolArray, IntArray
from evaluations.stats.connectivity import reach_all, reachable
from evaluations.stats.contributions import FloatArray
from evaluations.stats.laplacian import Graph, solution

MOST_STEPS: Final = 40
LONGEST_STEP: Final = 3.0  # in log odds
MOST_DENSE: Final = 200  # candidates: of more a matrix of every two of them costs too much
MOST_LISTED: Final = 5  # names in a sentence
PRECISE: Final = 1e-6  # a step of this length leaves an error of its square


@dataclass(frozen=True)
class Table:
    """``first`` and ``second``: the candidates of each pair, by number below ``candidates``.

    ``matches``: how often each pair met, and ``wins`` how often the first won, a tie being half of one; both may be
    weighted, and (…, pairs).
    """

    first: IntArray
    second: IntArray
    candidates: int
    matches: FloatArray
    wins: FloatArray

    def only(self, kept: BoolArray) -> "Table":
        """These of many tables."""
        return Table(self.first, self.second, self.candidates, self.matches[kept], self.wins[kept])


def scores(table: Table, start: FloatArray | None = None) -> FloatArray:
    """The scores of greatest likelihood; NaN where there are none (`have_scores`) or none was found.

    ``start``: scores to begin from, one for each candidate.
    """
    found = np.full((*table.matches.shape[:-1], table.candidates), np.nan)
    settled = have_scores(table)
    if settled.any():
        at = np.zeros(table.candidates) if start is None else start
        sparse = settled.ndim == 0 and table.candidates > MOST_DENSE
        found[settled] = climbed_sparse(table, at) if sparse else climbed(table.only(settled), at)
    return found


def climbed(table: Table, start: FloatArray) -> FloatArray:
    """By Newton's steps from ``start``; NaN where they do not come to rest."""
    at = np.broadcast_to(start, (*table.matches.shape[:-1], table.candidates)).copy()
    for _ in range(MOST_STEPS):
        step = np.linalg.solve(curvature(table, at), gradient(table, at)[..., None])[..., 0]
        longest = np.abs(step).max(axis=-1, keepdims=True)
        at += step * np.minimum(1, LONGEST_STEP / np.maximum(longest, LONGEST_STEP))
        if (longest < PRECISE).all():
            break
    return np.where(longest < PRECISE, at, np.nan)


def climbed_sparse(table: Table, start: FloatArray) -> FloatArray:
    """The same of one table of many candidates, most of whom never met: each step costs what its pairs do."""
    met = table.matches > 0
    graph = Graph(table.first[met], table.second[met], table.candidates)
    matches, wins = table.matches[met], table.wins[met]
    at = start - start.mean()
    for _ in range(MOST_STEPS):
        p = (1 + np.tanh((at[graph.first] - at[graph.second]) / 2)) / 2
        step = solution(graph, matches * p * (1 - p), graph.differences(wins - matches * p))
        longest = float(np.abs(step).max())
        at = at + step * min(1.0, LONGEST_STEP / max(longest, LONGEST_STEP))
        if longest < PRECISE:
            return np.asarray(at - at.mean())
    return np.full(table.candidates, np.nan)


def chances(table: Table, at: FloatArray) -> FloatArray:
    """That the first of each pair wins, at these scores: (…, pairs)."""
    return np.asarray((1 + np.tanh((at[..., table.first] - at[..., table.second]) / 2)) / 2)


def gradient(table: Table, at: FloatArray) -> FloatArray:
    """Wins above what the scores lead one to expect, of each candidate: (…, candidates)."""
    surplus = table.wins - table.matches * chances(table, at)
    return np.asarray(surplus @ incidence(table))


def incidence(table: Table) -> FloatArray:
    """1 for the first and −1 for the second of each pair: pairs × candidates."""
    found = np.zeros((len(table.first), table.candidates))
    pairs = np.arange(len(table.first))
    found[pairs, table.first], found[pairs, table.second] = 1, -1
    return found


def curvature(table: Table, at: FloatArray) -> FloatArray:
    """Minus the second derivative, made regular: scores are known but for a constant, and sums of 0 stay so."""
    p = chances(table, at)
    shared = table.matches * p * (1 - p)
    found = np.zeros((*shared.shape[:-1], table.candidates, table.candidates))
    found[..., table.first, table.second] = found[..., table.second, table.first] = -shared
    own = -found.sum(axis=-1)
    diagonal = np.arange(table.candidates)
    found[..., diagonal, diagonal] = own
    return np.asarray(found + own.mean(axis=-1)[..., None, None] / table.candidates)


def steps(table: Table) -> tuple[IntArray, IntArray, BoolArray]:
    """From who did not lose all to whom: tails, heads, and whether it ever won, or tied: (…, 2 × pairs)."""
    tail, head = np.concatenate([table.first, table.second]), np.concatenate([table.second, table.first])
    return tail, head, np.concatenate([table.wins > 0, table.wins < table.matches], axis=-1)


def have_scores(table: Table) -> BoolArray:
    """Whether everyone beats everyone by some chain of wins: else some score is without bound (Ford 1957)."""
    tail, head, beats = steps(table)
    if beats.ndim > 1:
        flat = beats.reshape(-1, beats.shape[-1])
        found = reach_all(tail, head, flat, table.candidates) & reach_all(head, tail, flat, table.candidates)
        return np.asarray(found.reshape(beats.shape[:-1]))
    tail, head = tail[beats], head[beats]
    ways = (reachable(*way, table.candidates, 0) for way in ((tail, head), (head, tail)))
    return np.asarray(all(len(one) == table.candidates for one in ways))


def obstacle(table: Table, names: Sequence[str]) -> str | None:
    """In words why this one table has no scores."""
    if have_scores(table):
        return None
    if apart := gap(table, names):
        return apart
    ahead = foremost(table)
    return (
        f"In every comparison of the two groups {listed(names, ahead)} won against {listed(names, ~ahead)}: no scores "
        "lie far enough apart for that."
    )


def foremost(table: Table) -> BoolArray:
    """Candidates that nobody else ever beat or tied with: from any one, upwards by wins alone."""
    tail, head, beats = steps(table)
    tail, head = tail[beats], head[beats]
    best = 0
    while True:
        above = reachable(head, tail, table.candidates, best)
        below = among(reachable(tail, head, table.candidates, best), table.candidates)
        unbeaten = above[~below[above]]
        if not len(unbeaten):
            return among(above, table.candidates)
        best = int(unbeaten[-1])


def among(places: IntArray, count: int) -> BoolArray:
    found = np.zeros(count, dtype=np.bool_)
    found[places] = True
    return found


def gap(table: Table, names: Sequence[str]) -> str | None:
    """In words between whom of this one table nothing tells who is better."""
    met = table.matches > 0
    tail, head = np.concatenate([table.first, table.second]), np.concatenate([table.second, table.first])
    found = reachable(tail[np.tile(met, 2)], head[np.tile(met, 2)], table.candidates, 0)
    if len(found) == table.candidates:
        return None
    together = among(found, table.candidates)
    return (
        f"No comparison, direct or through others, leads from {listed(names, together)} to {listed(names, ~together)}."
    )


def listed(names: Sequence[str], chosen: BoolArray) -> str:
    """The first of them by name, and how many others there are."""
    found = [name for name, is_one in zip(names, chosen, strict=True) if is_one]
    if len(found) <= MOST_LISTED:
        return ", ".join(found)
    return f"{', '.join(found[:MOST_LISTED])} and {len(found) - MOST_LISTED:,} others"
