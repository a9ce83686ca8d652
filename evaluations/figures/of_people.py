"""The plots of people: each beside the judges and the others, and everyone over time."""

from collections.abc import Iterator, Sequence
from datetime import date

from evaluations.figures.comparing import by_reviewer
from evaluations.figures.estimates import Dated, Estimate, estimate_of
from evaluations.figures.media import PEOPLE, Medium
from evaluations.figures.over_time import over_time
from evaluations.figures.plots import Caption, Plot
from evaluations.figures.quantities import share
from evaluations.stats.parts import AspectPeople
from evaluations.stats.reviewers import Reviewer
from evaluations.stats.timeline import Timeline, TimelinePoint

OTHERS = "“people” is agreement with the majority of the other people on the same comparison."
VOTES = (
    "Each vote stands on the day of its first choice. “people” is how often another vote on the same comparison is "
    "the same."
)


def people_plots(people: AspectPeople, aspect: str, medium: Medium) -> list[Plot]:
    if not people.reviewers:
        return []
    caption = Caption("people-reviewers", f"Agreement of each person on {aspect}", OTHERS)
    each = by_reviewer(caption, list(of_reviewers(people.reviewers)), share("Agreement"), medium)
    return [each, *timeline_plots(people.timeline, aspect, medium)]


def of_reviewers(reviewers: Sequence[Reviewer]) -> Iterator[Estimate]:
    for one in reviewers:
        yield estimate_of(one.rater, PEOPLE, one.others)
        for judge, number in one.judges.items():
            yield estimate_of(one.rater, judge, number)


def timeline_plots(timeline: Timeline, aspect: str, medium: Medium) -> Iterator[Plot]:
    if timeline.bucket and len(timeline.points) > 1:  # one period is no course
        caption = Caption("people-time", f"Agreement over time on {aspect}, by {timeline.bucket}", VOTES)
        yield over_time(caption, [dated for point in timeline.points for dated in of_point(point)], medium)


def of_point(point: TimelinePoint) -> Iterator[Dated]:
    day = date.fromisoformat(point.start)
    label = point.start if point.start == point.end else f"{point.start} to {point.end}"
    yield Dated(day, estimate_of(label, PEOPLE, point.people))
    for judge, number in point.judges.items():
        yield Dated(day, estimate_of(label, judge, number))
