"""Who comes to whom along steps between numbered places: of one graph in linear time, of many small ones at once."""

import numpy as np

from evaluations.stats.coding import BoolArray, IntArray


def reachable(tail: IntArray, head: IntArray, places: int, start: int) -> IntArray:
    """The places that steps from ``tail`` to ``head`` lead to from ``start``, itself first, the nearest first."""
    order = np.argsort(tail, kind="stable")
    heads = head[order].tolist()
    ends = np.cumsum(np.bincount(tail, minlength=places)).tolist()
    seen = bytearray(places)
    seen[start] = 1
    found = [start]
    for place in found:  # it grows while it is walked through
        for step in heads[ends[place - 1] if place else 0 : ends[place]]:
            if not seen[step]:
                seen[step] = 1
                found.append(step)
    return np.array(found)


def reach_all(tail: IntArray, head: IntArray, present: BoolArray, places: int) -> BoolArray:
    """Of many graphs on one set of places: whether the first leads to all of them. ``present``: graphs × steps."""
    order = np.argsort(head, kind="stable")
    tail, present = tail[order], present[:, order]
    targets, starts = np.unique(head[order], return_index=True)
    found = np.zeros((len(present), places), dtype=np.bool_)
    found[:, 0] = True
    while True:
        came = np.logical_or.reduceat(found[:, tail] & present, starts, axis=1)
        if not (came & ~found[:, targets]).any():
            return np.asarray(found.all(axis=1))
        found[:, targets] |= came
