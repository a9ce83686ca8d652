"""The plots of judges among themselves: which agrees more with people, and whether each is as sure as it is right."""

from collections.abc import Iterator, Mapping, Sequence

from evaluations.figures.calibration import calibration
from evaluations.figures.estimates import Binned, estimate_of
from evaluations.figures.media import Medium
from evaluations.figures.plots import Caption, Plot
from evaluations.figures.quantities import points
from evaluations.figures.rows import in_rows
from evaluations.stats.confidence import Confidence, ConfidenceBin
from evaluations.stats.looks import ComparedJudges

DIFFERENCE = points("Difference in agreement")
SAME_ITEMS = "With the majority of people, splits left out, on the comparisons on which both judges have a verdict."
WEIGHTS = (
    "The weight that the judge put on A, from the probabilities of its labels, against how often people chose A; a tie "
    "is half. On the dashed line both are the same."
)


def differences(compared: Sequence[ComparedJudges], names: Mapping[str, str], medium: Medium) -> Plot:
    """``names``: of aspects by key."""
    estimates = [
        estimate_of(names.get(key, key), f"{two.first} less {two.second}", one.comparison.difference)
        for two in compared
        for key, one in two.aspects.items()
    ]
    caption = Caption("judges-differences", "Which judge agrees more with people", SAME_ITEMS)
    return in_rows(caption, estimates, DIFFERENCE, medium, row_name="Aspect", neutral=0.0)


def confidence_plots(found: Mapping[str, Confidence], aspect: str, medium: Medium) -> Iterator[Plot]:
    binned = [binned_of(name, one) for name, judge in found.items() for one in judge.bins if one.n]
    if binned:
        caption = Caption("judges-confidence", f"Is each judge as sure as it is right, on {aspect}?", WEIGHTS)
        yield calibration(caption, binned, medium)


def binned_of(judge: str, one: ConfidenceBin) -> Binned:
    label = f"{one.low:.0%} to {one.high:.0%}"
    return Binned(one.mean_weight or 0.0, estimate_of(label, judge, one.chosen_by_people))
