"""Reachability in the graph of compared candidates, with a solver for its Laplacian.

Nodes ordered by their distance from one node have edges to the next level alone: where levels are narrow, as in chains
and grids, the system is solved level by level; where they are wide all nodes are close, and conjugate gradients need
few steps.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from evaluations.stats.coding import BoolArray, FloatArray, IntArray


def reachable_nodes(tail: IntArray, head: IntArray, nodes: int, start: int) -> IntArray:
    """The nodes reachable from ``start``, nearest first, itself included."""
    order = np.argsort(tail, kind="stable")
    heads = head[order].tolist()
    ends = np.cumsum(np.bincount(tail, minlength=nodes)).tolist()
    seen = bytearray(nodes)
    seen[start] = 1
    reached = [start]
    for node in reached:  # it grows while it is walked through
        for step in heads[ends[node - 1] if node else 0 : ends[node]]:
            if not seen[step]:
                seen[step] = 1
                reached.append(step)
    return np.array(reached)


def reaches_all_nodes(tail: IntArray, head: IntArray, present: BoolArray, nodes: int) -> BoolArray:
    """For many graphs on the same nodes, whether the first node reaches all others. ``present``: graphs × steps."""
    order = np.argsort(head, kind="stable")
    tail, present = tail[order], present[:, order]
    targets, starts = np.unique(head[order], return_index=True)
    reached = np.zeros((len(present), nodes), dtype=np.bool_)
    reached[:, 0] = True
    while True:
        came = np.logical_or.reduceat(reached[:, tail] & present, starts, axis=1)
        if not (came & ~reached[:, targets]).any():
            return np.asarray(reached.all(axis=1))
        reached[:, targets] |= came


PRECISE: Final = 1e-5  # the residual that conjugate gradients leave, as a share of the right side
MAX_STEPS: Final = 3_000
MIN_WIDTH: Final = 32  # of a block of levels: below, a block costs what calling numpy costs
MAX_WORK: Final = 1e9  # the sum of widths cubed


@dataclass(frozen=True)
class WeightedGraph:
    """A connected graph, in which edge e joins ``first[e]`` and ``second[e]``."""

    first: IntArray
    second: IntArray
    nodes: int

    def differences(self, of_edge: FloatArray) -> FloatArray:
        """Per node, the sum over its edges: added at their first node, subtracted at their second."""
        added = np.bincount(self.first, of_edge, self.nodes)
        return np.asarray(added - np.bincount(self.second, of_edge, self.nodes))

    def product(self, weight: FloatArray, x: FloatArray) -> FloatArray:
        """L x, L = Σ weight · (eᵢ − eⱼ)(eᵢ − eⱼ)ᵀ."""
        return self.differences(weight * (x[self.first] - x[self.second]))

    def degrees(self, weight: FloatArray) -> FloatArray:
        added = np.bincount(self.first, weight, self.nodes)
        return np.asarray(added + np.bincount(self.second, weight, self.nodes))

    @cached_property
    def levels(self) -> "GraphLevels":
        """Levels by the distance from a node far from another one, so that there are many of them."""
        tail, head = np.concatenate([self.first, self.second]), np.concatenate([self.second, self.first])
        far = int(reachable_nodes(tail, head, self.nodes, 0)[-1])
        order = reachable_nodes(tail, head, self.nodes, far)
        rank = np.empty(self.nodes, dtype=np.int64)
        rank[order] = np.arange(self.nodes)
        return GraphLevels(order, block_starts(rank[tail], rank[head], self.nodes))


@dataclass(frozen=True)
class GraphLevels:
    """``order``: the nodes from the first on; block k is ``order[starts[k]:starts[k + 1]]``."""

    order: IntArray
    starts: IntArray

    @property
    def work(self) -> float:
        return float((np.diff(self.starts).astype(np.float64) ** 3).sum())


def block_starts(tail: IntArray, head: IntArray, nodes: int) -> IntArray:
    """The starts of blocks of whole levels, and the end; no edge goes beyond the next block.

    ``tail`` and ``head``: nodes by their rank. A level ends at the farthest neighbour of its last node.
    """
    farthest = np.zeros(nodes, dtype=np.int64)
    np.maximum.at(farthest, tail, head)
    farthest = np.maximum.accumulate(farthest)
    starts, end = [0], 1
    while end < nodes:
        following = int(farthest[end - 1]) + 1
        if end - starts[-1] >= MIN_WIDTH:
            starts.append(end)
        end = following
    return np.array([*starts, nodes])


def solve_laplacian(graph: WeightedGraph, weight: FloatArray, right: FloatArray) -> FloatArray:
    """x of mean 0 with L x = ``right``, which sums to 0; ``weight``, of the edges, is above 0."""
    narrow = graph.levels.work <= MAX_WORK
    solution = (solve_by_block_elimination if narrow else solve_by_conjugate_gradients)(graph, weight, right)
    return np.asarray(solution - solution.mean())


def solve_by_block_elimination(graph: WeightedGraph, weight: FloatArray, right: FloatArray) -> FloatArray:
    """Block elimination, the first node fixed at 0: S₀ = D₀, Sₖ = Dₖ − Eₖ Sₖ₋₁⁻¹ Eₖᵀ."""
    order, starts = graph.levels.order, graph.levels.starts
    rank = np.empty(graph.nodes, dtype=np.int64)
    rank[order] = np.arange(graph.nodes)
    first, second = rank[graph.first], rank[graph.second]
    low, high = np.minimum(first, second), np.maximum(first, second)
    block = np.searchsorted(starts, low, side="right") - 1
    by_block = np.argsort(block, kind="stable")
    ends = np.searchsorted(block[by_block], np.arange(len(starts)))
    degree, rest = graph.degrees(weight)[order], right[order].copy()
    degree[0] += weight.max()  # any weight fixes the first node at 0, because the right side sums to 0
    carried = np.zeros((int(starts[1]), int(starts[1])))
    solved: list[FloatArray] = []
    for k in range(len(starts) - 1):
        begin, end = int(starts[k]), int(starts[k + 1])
        beyond = int(starts[k + 2]) if k + 2 < len(starts) else end
        here = by_block[ends[k] : ends[k + 1]]
        within = here[high[here] < end]
        across = here[high[here] >= end]
        matrix = np.diag(degree[begin:end]) - carried
        for rows, columns in ((low, high), (high, low)):
            matrix[rows[within] - begin, columns[within] - begin] -= weight[within]
        coupling = np.zeros((end - begin, beyond - end + 1))
        coupling[low[across] - begin, high[across] - end] = -weight[across]
        coupling[:, -1] = rest[begin:end]
        gain: FloatArray = np.linalg.solve(matrix, coupling).astype(np.float64, copy=False)
        solved.append(gain)
        rest[end:beyond] -= coupling[:, :-1].T @ gain[:, -1]
        carried = coupling[:, :-1].T @ gain[:, :-1]
    at, after = np.empty(graph.nodes), np.empty(0)
    for k in range(len(starts) - 2, -1, -1):
        after = solved[k][:, -1] - solved[k][:, :-1] @ after
        at[order[starts[k] : starts[k + 1]]] = after
    return at


def solve_by_conjugate_gradients(graph: WeightedGraph, weight: FloatArray, right: FloatArray) -> FloatArray:
    """Conjugate gradients (Hestenes and Stiefel 1952), preconditioned by the diagonal."""
    diagonal, right_norm = graph.degrees(weight), float(np.linalg.norm(right))
    at, residual = np.zeros(graph.nodes), right
    toward = direction = residual / diagonal
    product = float(residual @ toward)
    for _ in range(MAX_STEPS):
        if np.linalg.norm(residual) <= PRECISE * right_norm:
            break
        moved = graph.product(weight, direction)
        step = product / float(direction @ moved)
        at, residual = at + step * direction, residual - step * moved
        toward = residual / diagonal
        before, product = product, float(residual @ toward)
        direction = toward + product / before * direction
    return at
