"""The plots whose numbers stand in rows: one function each, one question each."""

from collections.abc import Sequence

from evaluations.figures.estimates import Estimate
from evaluations.figures.media import PAGE, Medium
from evaluations.figures.plots import Caption, Plot
from evaluations.figures.quantities import Quantity, share
from evaluations.figures.rows import in_rows

EVEN = 0.5


def win_rates(caption: Caption, estimates: Sequence[Estimate], medium: Medium = PAGE) -> Plot:
    """Of each candidate: from people, from the judge alone, and corrected by people."""
    return in_rows(caption, estimates, share("Win rate"), medium, row_name="Candidate", neutral=EVEN)


def by_aspect(caption: Caption, estimates: Sequence[Estimate], quantity: Quantity, medium: Medium = PAGE) -> Plot:
    """Judges, people, and the human ceiling on each aspect, on one scale."""
    return in_rows(caption, estimates, quantity, medium, row_name="Aspect")


def by_reviewer(caption: Caption, estimates: Sequence[Estimate], quantity: Quantity, medium: Medium = PAGE) -> Plot:
    """Of each person, with each judge or with the others."""
    return in_rows(caption, estimates, quantity, medium, row_name="Person")


def preferences(caption: Caption, estimates: Sequence[Estimate], medium: Medium = PAGE) -> Plot:
    """How often the first shown, or the longer, response is chosen: half the time where it makes no difference."""
    return in_rows(caption, estimates, share("Share of verdicts without ties"), medium, row_name="Rater", neutral=EVEN)
