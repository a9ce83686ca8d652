"""How far raters agree on the comparisons that leave, as the card of a data set tells it."""

from collections.abc import Iterator

from django.db.models import QuerySet

from evaluations.domain import Part, Rules
from evaluations.formats.card import Agreed
from evaluations.models import Comparison
from evaluations.services.exporting.casting import Cast
from evaluations.services.reporting.reporting import AspectReport, Number, make_report


def agreed(cast: Cast, comparisons: "QuerySet[Comparison]") -> Iterator[Agreed]:
    """On each aspect how far people agree among themselves, and each judge with their majority."""
    report = make_report(cast.evaluation, comparisons, Rules(), parts=(Part.AGREEMENT,))
    judges = {judge.name for judge in cast.judges.values()}
    for key, aspect in report.aspects.items():
        yield from agreed_on(key, aspect, judges)


def agreed_on(key: str, aspect: AspectReport, judges: set[str]) -> Iterator[Agreed]:
    alpha = aspect.human_human.multi.krippendorff_alpha
    if alpha.value is not None:
        yield told(key, "people", "Krippendorff's alpha", alpha)
    for name, judge in aspect.judges.items():
        against = judge.judge_human.majority.with_ties
        if name in judges and against.agreement.value is not None:
            yield told(key, f"{name} and the majority of people", "agreement", against.agreement)
            if against.cohen_kappa.value is not None:
                yield told(key, f"{name} and the majority of people", "Cohen's kappa", against.cohen_kappa)


def told(key: str, between: str, measure: str, number: Number) -> Agreed:
    interval = f"{number.ci95[0]:.2f} to {number.ci95[1]:.2f}" if number.ci95 else "–"
    return Agreed(key, between, measure, f"{number.value:.2f}", interval, number.n)
