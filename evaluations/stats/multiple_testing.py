"""P values adjusted for several tests by Holm or by Benjamini and Yekutieli."""

import numpy as np

from evaluations.stats.coding import FloatArray, IntArray


def holm_adjust(p: FloatArray) -> FloatArray:
    """Adjusted p values that control the family-wise error rate (Holm 1979), in the order of ``p``.

    The i-th smallest of m is multiplied by m − i + 1, and is never below one that is smaller.
    """
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return restore_order(np.minimum(stepped, 1.0), order)


def benjamini_yekutieli_adjust(p: FloatArray) -> FloatArray:
    """Adjusted p values that control the false discovery rate under any dependence (2001).

    The i-th smallest of m is multiplied by (1 + 1/2 + … + 1/m) · m ÷ i, and is never above one that is larger.
    """
    order = np.argsort(p, kind="stable")
    ranks = np.arange(1, len(p) + 1)
    stretched = p[order] * float((1 / ranks).sum()) * len(p) / ranks
    stepped = np.minimum.accumulate(stretched[::-1])[::-1]
    return restore_order(np.minimum(stepped, 1.0), order)


def restore_order(values: FloatArray, order: IntArray) -> FloatArray:
    restored = np.empty(len(values))
    restored[order] = values
    return restored
