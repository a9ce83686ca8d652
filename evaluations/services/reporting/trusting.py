"""How sure judges said they were: the weights that their verdicts carry."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from evaluations.models import Rater, Verdict, of_test_calls
from evaluations.services.reporting.packing import code, groups
from evaluations.services.reporting.unpacking import Places, unfinished_imports
from evaluations.stats.coding import ORDERS
from evaluations.stats.parts import Weights

WEIGHT: Final = np.dtype(
    [*((name, np.int64) for name in ("rater", "comparison", "aspect", "shown")), ("weighted", np.float64)]
)


def read_weights(raters: Sequence[Rater], places: Places) -> dict[tuple[int, int], Weights]:
    """By rater id and aspect id, of judges that were asked for the probabilities of their labels."""
    asked = [rater for rater in raters if rater.judge is not None and rater.judge.logprobs]
    given = Verdict.all_rows.filter(rater__in=asked, weighted__isnull=False).exclude(of_test_calls())
    if hidden := unfinished_imports({rater.evaluation_id for rater in asked}):
        given = given.exclude(source_import__in=hidden)
    columns = given.order_by().values_list("rater_id", "comparison_id", "aspect_id", code("shown", ORDERS), "weighted")
    rows = np.fromiter(columns.iterator(chunk_size=10_000), dtype=WEIGHT)
    place, known = places.of(rows["comparison"])
    rows["comparison"] = place
    rows = rows if known is None else rows[known]
    return {
        (rater, about): Weights(part["comparison"], part["shown"], part["weighted"])
        for (rater, about), part in groups(rows, "rater", "aspect")
    }
