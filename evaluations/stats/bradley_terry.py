"""Bradley–Terry scores fitted to a table of wins (Bradley and Terry 1952).

P(i beats j) = 1 ÷ (1 + exp(sⱼ − sᵢ)). A tie is half a win for each. Scores are log odds that sum to 0. Many tables may
be fitted at once, one for each resample: arrays whose last axis is the pairs, (…, pairs), give scores (…, candidates).
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.comparison_graph import WeightedGraph, reachable_nodes, reaches_all_nodes, solve_laplacian

MAX_STEPS: Final = 40
MAX_STEP: Final = 3.0  # in log odds
MAX_DENSE: Final = 200  # candidates: of more a matrix of every two of them costs too much
MAX_LISTED: Final = 5  # names in a sentence
PRECISE: Final = 1e-6  # a step of this length leaves an error of its square


@dataclass(frozen=True)
class WinTable:
    """The matches of pairs of candidates, of one table or of many.

    ``first`` and ``second``: the candidates of each pair, numbers below ``candidates``. ``matches``: how often each
    pair was compared; ``wins``: how often the first won, a tie being half a win; both (…, pairs), and weighted or not.
    """

    first: IntArray
    second: IntArray
    candidates: int
    matches: FloatArray
    wins: FloatArray

    def select(self, selected: BoolArray) -> "WinTable":
        """The selected ones of many tables."""
        return WinTable(self.first, self.second, self.candidates, self.matches[selected], self.wins[selected])


def bradley_terry_scores(table: WinTable, start: FloatArray | None = None) -> FloatArray:
    """The maximum-likelihood scores in log odds, (…, candidates); NaN where none exist (`has_finite_scores`).

    They are NaN too where the iteration does not converge. ``start``: scores to begin from, one for each candidate.
    """
    scores = np.full((*table.matches.shape[:-1], table.candidates), np.nan)
    settled = has_finite_scores(table)
    if settled.any():
        at = np.zeros(table.candidates) if start is None else start
        sparse = settled.ndim == 0 and table.candidates > MAX_DENSE
        scores[settled] = newton_scores_sparse(table, at) if sparse else newton_scores(table.select(settled), at)
    return scores


def newton_scores(table: WinTable, start: FloatArray) -> FloatArray:
    """Scores by Newton's method from ``start``; NaN without convergence."""
    at = np.broadcast_to(start, (*table.matches.shape[:-1], table.candidates)).copy()
    incidence = incidence_matrix(table)
    for _ in range(MAX_STEPS):
        surplus = table.wins - table.matches * win_probabilities(table, at)
        step = solve_each(information_matrix(table, at), surplus @ incidence)
        longest = np.abs(step).max(axis=-1, keepdims=True)
        at += step * np.minimum(1, MAX_STEP / np.maximum(longest, MAX_STEP))
        if ((longest < PRECISE) | np.isnan(longest)).all():
            break
    return np.where(longest < PRECISE, at, np.nan)


def solve_each(matrices: FloatArray, values: FloatArray) -> FloatArray:
    """The solutions, (…, candidates); NaN where a matrix is singular, as where the scores are too far apart."""
    with suppress(np.linalg.LinAlgError):
        return np.asarray(np.linalg.solve(matrices, values[..., None])[..., 0])
    solutions = np.full(values.shape, np.nan)
    for index in np.ndindex(values.shape[:-1]):
        with suppress(np.linalg.LinAlgError):
            solutions[index] = np.linalg.solve(matrices[index], values[index])
    return solutions


def newton_scores_sparse(table: WinTable, start: FloatArray) -> FloatArray:
    """Scores of one table of many candidates, at a cost that depends on the number of compared pairs."""
    compared = table.matches > 0
    graph = WeightedGraph(table.first[compared], table.second[compared], table.candidates)
    matches, wins = table.matches[compared], table.wins[compared]
    at = start - start.mean()
    for _ in range(MAX_STEPS):
        p = (1 + np.tanh((at[graph.first] - at[graph.second]) / 2)) / 2
        step = solve_laplacian(graph, matches * p * (1 - p), graph.differences(wins - matches * p))
        longest = float(np.abs(step).max())
        at = at + step * min(1.0, MAX_STEP / max(longest, MAX_STEP))
        if longest < PRECISE:
            return np.asarray(at - at.mean())
    return np.full(table.candidates, np.nan)


def win_probabilities(table: WinTable, at: FloatArray) -> FloatArray:
    """The probability that the first of each pair wins: (…, pairs)."""
    return np.asarray((1 + np.tanh((at[..., table.first] - at[..., table.second]) / 2)) / 2)


def incidence_matrix(table: WinTable) -> FloatArray:
    """1 for the first and −1 for the second of each pair: pairs × candidates."""
    matrix = np.zeros((len(table.first), table.candidates))
    pairs = np.arange(len(table.first))
    matrix[pairs, table.first], matrix[pairs, table.second] = 1, -1
    return matrix


def information_matrix(table: WinTable, at: FloatArray) -> FloatArray:
    """Minus the second derivative, made regular: scores are known but for a constant, and sums of 0 stay so."""
    p = win_probabilities(table, at)
    shared = table.matches * p * (1 - p)
    matrix = np.zeros((*shared.shape[:-1], table.candidates, table.candidates))
    matrix[..., table.first, table.second] = matrix[..., table.second, table.first] = -shared
    own = -matrix.sum(axis=-1)
    diagonal = np.arange(table.candidates)
    matrix[..., diagonal, diagonal] = own
    return np.asarray(matrix + own.mean(axis=-1)[..., None, None] / table.candidates)


def beat_edges(table: WinTable) -> tuple[IntArray, IntArray, BoolArray]:
    """Edges from each candidate that did not lose all to its opponent: tails, heads, presence (…, 2 × pairs)."""
    tail, head = np.concatenate([table.first, table.second]), np.concatenate([table.second, table.first])
    return tail, head, np.concatenate([table.wins > 0, table.wins < table.matches], axis=-1)


def has_finite_scores(table: WinTable) -> BoolArray:
    """Whether a chain of wins leads from every candidate to every other, without which scores diverge (Ford 1957)."""
    tail, head, beats = beat_edges(table)
    if beats.ndim > 1:
        flat = beats.reshape(-1, beats.shape[-1])
        ways = [reaches_all_nodes(*direction, flat, table.candidates) for direction in ((tail, head), (head, tail))]
        return np.asarray((ways[0] & ways[1]).reshape(beats.shape[:-1]))
    tail, head = tail[beats], head[beats]
    reached = (reachable_nodes(*direction, table.candidates, 0) for direction in ((tail, head), (head, tail)))
    return np.asarray(all(len(nodes) == table.candidates for nodes in reached))


def explain_missing_scores(table: WinTable, names: Sequence[str]) -> str | None:
    if has_finite_scores(table):
        return None
    if apart := explain_unconnected(table, names):
        return apart
    ahead = unbeaten_candidates(table)
    return (
        f"Bradley–Terry undefined: {list_candidates(names, ahead)} won every comparison against "
        f"{list_candidates(names, ~ahead)}."
    )


def unbeaten_candidates(table: WinTable) -> BoolArray:
    """A group of candidates that nobody outside it ever beat or tied with, found by following wins upwards."""
    tail, head, beats = beat_edges(table)
    tail, head = tail[beats], head[beats]
    best = 0
    while True:
        above = reachable_nodes(head, tail, table.candidates, best)
        below = membership_mask(reachable_nodes(tail, head, table.candidates, best), table.candidates)
        unbeaten = above[~below[above]]
        if not len(unbeaten):
            return membership_mask(above, table.candidates)
        best = int(unbeaten[-1])


def membership_mask(positions: IntArray, count: int) -> BoolArray:
    mask = np.zeros(count, dtype=np.bool_)
    mask[positions] = True
    return mask


def explain_unconnected(table: WinTable, names: Sequence[str]) -> str | None:
    """A sentence on two groups of candidates without a comparison between them, or None."""
    compared = table.matches > 0
    tail, head = np.concatenate([table.first, table.second]), np.concatenate([table.second, table.first])
    reached = reachable_nodes(tail[np.tile(compared, 2)], head[np.tile(compared, 2)], table.candidates, 0)
    if len(reached) == table.candidates:
        return None
    connected = membership_mask(reached, table.candidates)
    return (
        f"Bradley–Terry undefined: no comparisons connect {list_candidates(names, connected)} "
        f"with {list_candidates(names, ~connected)}."
    )


def list_candidates(names: Sequence[str], chosen: BoolArray) -> str:
    """The first chosen candidates by name, and the number of the others."""
    listed = [name for name, is_one in zip(names, chosen, strict=True) if is_one]
    if len(listed) <= MAX_LISTED:
        return ", ".join(listed)
    return f"{', '.join(listed[:MAX_LISTED])} and {len(listed) - MAX_LISTED:,} others"
