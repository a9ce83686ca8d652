"""A reliability diagram: how often a judge is right where it says that it is sure."""

from collections.abc import Sequence
from typing import Final

from evaluations.figures.assembling import AXIS_PIXELS, Drawn, drawable, measured_axis, plotted, specified
from evaluations.figures.estimates import Binned
from evaluations.figures.layers import coloured, datum, diagonal, lines, points, text, tooltip, whiskers
from evaluations.figures.legends import legend_height
from evaluations.figures.media import PAGE, Json, Medium
from evaluations.figures.plots import Caption, Plot
from evaluations.figures.quantities import reach, share
from evaluations.figures.tables import rows_of_binned
from evaluations.figures.wording import notes_of

RIGHT: Final = share("Share that agrees with people")
CONFIDENCE: Final = share("Mean confidence of the judge")
INNER_PIXELS: Final = 320
# Between two judges that are equally sure: this share of the axis, so that one does not hide the other.
APART: Final = 0.012


def calibration(caption: Caption, binned: Sequence[Binned], medium: Medium = PAGE) -> Plot:
    """On the dashed line confidence is what it claims to be; below it the judge is too sure of itself."""
    estimates = [one.estimate for one in binned]
    drawn = drawable(estimates, medium)
    notes = notes_of(estimates, caption.rule, upright=True)
    spec = None
    if drawn.estimates:
        series = drawn.style.names
        domain = reach(RIGHT, drawn.estimates, [one.confidence for one in binned])
        data = data_of([one for one in binned if one.estimate in drawn.estimates], series, domain[1] - domain[0])
        height = INNER_PIXELS + AXIS_PIXELS + legend_height(series)
        spec = specified(caption, medium, notes, data, height, reliability(drawn, domain, medium))
    return plotted(caption, estimates, RIGHT, rows_of_binned(binned, RIGHT), notes, spec)


def data_of(binned: Sequence[Binned], series: Sequence[str], length: float) -> list[Json]:
    apart = APART * length
    middle = (len(series) - 1) / 2
    return [
        {
            **datum(one.estimate, RIGHT),
            "confidence": CONFIDENCE.said(one.confidence),
            "drawn_at": round(one.confidence + apart * (series.index(one.estimate.series) - middle), 6),
        }
        for one in binned
    ]


def reliability(drawn: Drawn, domain: Sequence[float], medium: Medium) -> list[Json]:
    """Both axes reach equally far, so that the diagonal is one."""
    style = drawn.style
    across = {**measured_axis(CONFIDENCE, domain), "field": "drawn_at"}
    along = measured_axis(RIGHT, domain, upright=True)
    says = tooltip("Confidence", RIGHT, text("confidence", CONFIDENCE.name))
    marks = [*lines(style, along), whiskers(along, upright=True), *points(style, medium, along, says, upright=True)]
    return [diagonal(domain, medium), {"encoding": {"x": across, "color": coloured(style)}, "layer": marks}]
