"""Bradley–Terry scores from a table of wins (Bradley and Terry 1952): P(i beats j) = 1 ÷ (1 + exp(sⱼ − sᵢ)).

A tie is half a win for each. Scores are log odds that sum to 0. Tables may be many at once, one for each
resample: whatever has pairs as its last axis, (…, pairs), gives scores (…, candidates).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.coding import BoolArray, IntArray
from evaluations.stats.contributions import FloatArray

MOST_STEPS: Final = 40
LONGEST_STEP: Final = 3.0  # in log odds
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
        found[settled] = climbed(table.only(settled), np.zeros(table.candidates) if start is None else start)
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


def beats(table: Table) -> BoolArray:
    """Whether i ever won, or tied, against j: (…, candidates, candidates)."""
    found = np.zeros((*table.matches.shape[:-1], table.candidates, table.candidates), dtype=np.bool_)
    found[..., table.first, table.second] = table.wins > 0
    found[..., table.second, table.first] = table.wins < table.matches
    return found


def reached(steps: BoolArray) -> BoolArray:
    """Who comes to whom by any number of such steps, with none to itself."""
    candidates = steps.shape[-1]
    found = (steps | np.eye(candidates, dtype=np.bool_)).astype(np.float32)
    for _ in range(max(candidates - 1, 1).bit_length()):
        found = np.minimum(found @ found, 1)
    return np.asarray(found > 0)


def have_scores(table: Table) -> BoolArray:
    """Whether everyone beats everyone by some chain of wins: else some score is without bound (Ford 1957)."""
    return np.asarray(reached(beats(table)).all(axis=(-1, -2)))


def obstacle(table: Table, names: Sequence[str]) -> str | None:
    """In words why this one table has no scores."""
    if have_scores(table):
        return None
    if apart := gap(table, names):
        return apart
    chains = reached(beats(table))
    # Who comes to most others is beaten by nobody but those that it beats in turn.
    foremost = np.argmax(chains.sum(axis=1))
    ahead = chains[foremost] & chains[:, foremost]
    return (
        f"In every comparison of the two groups {listed(names, ahead)} won against {listed(names, ~ahead)}: no scores "
        "lie far enough apart for that."
    )


def gap(table: Table, names: Sequence[str]) -> str | None:
    """In words between whom of this one table nothing tells who is better."""
    steps = beats(table)
    met = reached(steps | steps.T)[0]
    if met.all():
        return None
    return f"No comparison, direct or through others, leads from {listed(names, met)} to {listed(names, ~met)}."


def listed(names: Sequence[str], chosen: BoolArray) -> str:
    return ", ".join(name for name, is_one in zip(names, chosen, strict=True) if is_one)
