"""Several tests at once: p values adjusted so that each may be held against one level."""

import numpy as np

from evaluations.stats.coding import IntArray
from evaluations.stats.contributions import FloatArray


def holm(p: FloatArray) -> FloatArray:
    """Adjusted p values that keep the chance of any false rejection (Holm 1979); same order as ``p``.

    The i-th smallest of m is multiplied by m − i + 1, and is never below one that is smaller.
    """
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return in_order(np.minimum(stepped, 1.0), order)


def benjamini_yekutieli(p: FloatArray) -> FloatArray:
    """Adjusted p values that keep the share of false rejections under any dependence (Benjamini and Yekutieli 2001).

    The i-th smallest of m is multiplied by (1 + 1/2 + … + 1/m) · m ÷ i, and is never above one that is larger.
    """
    order = np.argsort(p, kind="stable")
    ranks = np.arange(1, len(p) + 1)
    stretched = p[order] * float((1 / ranks).sum()) * len(p) / ranks
    stepped = np.minimum.accumulate(stretched[::-1])[::-1]
    return in_order(np.minimum(stepped, 1.0), order)


def in_order(values: FloatArray, order: IntArray) -> FloatArray:
    found = np.empty(len(values))
    found[order] = values
    return found
