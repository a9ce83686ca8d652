"""Krippendorff's alpha of choices: 1 − observed ÷ expected disagreement, for any number of raters and missing votes.

They come as coincidences o: every pair of votes on a unit of m votes, both ways round, weighs 1 ÷ (m − 1)
(Krippendorff 2019, chapter 12). Units with one vote say nothing.
"""

import numpy as np

from evaluations.stats.contributions import FloatArray


def alpha_nominal(coincidences: FloatArray) -> FloatArray:
    """Any two choices are equally far apart. … × k × k → …, NaN where all votes are for one choice."""
    of_choice = coincidences.sum(axis=-1)
    total = of_choice.sum(axis=-1)
    apart = total - np.trace(coincidences, axis1=-2, axis2=-1)
    expected = (total**2 - (of_choice**2).sum(axis=-1)) / (total - 1)
    return np.asarray(1 - apart / expected)


def alpha_ordinal(coincidences: FloatArray) -> FloatArray:
    """Choices in order: two are as far apart as there are votes between them, each end counted half, squared."""
    of_choice = coincidences.sum(axis=-1)
    middle = np.cumsum(of_choice, axis=-1) - of_choice / 2
    apart = (middle[..., :, None] - middle[..., None, :]) ** 2
    total = of_choice.sum(axis=-1)
    observed = (coincidences * apart).sum(axis=(-2, -1))
    expected = (of_choice[..., :, None] * of_choice[..., None, :] * apart).sum(axis=(-2, -1)) / (total - 1)
    return np.asarray(1 - observed / expected)
