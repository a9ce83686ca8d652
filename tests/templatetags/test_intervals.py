"""Intervals inside tables."""

import re

import pytest
from django.template import engines

from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.templatetags.intervals import scale
from tests.helpers.page_text import laid_out

PEOPLE = Estimate(0.75, 40).with_interval(0.5, 1.0, "by cluster")
JUDGE = Estimate(0.25, 40)


def rendered(template: str, **context: object) -> str:
    return laid_out(engines["django"].from_string("{% load intervals %}" + template).render(context))


def cell(scale_of: str = "0 1", **numbers: Estimate | None) -> str:
    given = " ".join(f"{name}={name}" for name in numbers)
    return rendered(f"{{% scale {scale_of} as column %}}{{% interval column {given} %}}", **numbers)


def test_a_value_stands_where_its_scale_says() -> None:
    # 160 pixels with 8 on either side: 0 at 8, 1 at 152, .5 at 80.
    column = scale(0, 1)
    assert [column.at(value) for value in (0, 0.5, 1)] == [8, 80, 152]
    assert [scale(-1, 1).at(value) for value in (-1, 0, 1)] == [8, 80, 152]


def test_each_number_has_a_lane_a_shape_and_a_whisker() -> None:
    html = cell(people=PEOPLE, judge=JUDGE)
    assert 'height="28"' in html
    # .75 at 116, the interval from 80 to 152, in the lane around 7; the judge's lane is around 21.
    assert '<g class="people"><path class="whisker" d="M80.0 7.0H152.0"/><path class="point" d="M116.0 2.5l' in html
    assert '<g class="judge"><path class="point hollow" d="M40.5 21.0a' in html
    shapes = re.findall(r'<path class="point[^"]*" d="M\S+ \S+?([a-z])', html)
    assert shapes == ["l", "a"]


def test_a_cell_is_told_in_words() -> None:
    html = cell(people=PEOPLE, judge=JUDGE)
    assert 'role="img" aria-label="people 75.0%, 50.0% to 100.0%; judge 25.0%"' in html
    assert 'aria-label="judge −0.10"' in cell("-1 1 as_percent=False", judge=Estimate(-0.1, 4))


def test_what_is_undefined_leaves_its_lane_empty() -> None:
    html = cell(people=undefined_estimate("Nobody voted."), judge=PEOPLE)
    assert 'class="people"' not in html
    assert "M80.0 21.0H152.0" in html
    assert "people n/a; judge" in html


def test_a_number_that_is_not_there_has_no_lane() -> None:
    assert 'height="14"' in cell(people=None, judge=PEOPLE)
    nothing = cell(people=None)
    assert 'aria-label="n/a"' in nothing
    assert "<path" not in nothing


def test_an_interval_beyond_its_scale_ends_in_an_arrow() -> None:
    html = cell("0.6 0.9", people=PEOPLE)
    assert "M8.0 7.0H152.0M12.0 4.0L8.0 7.0L12.0 10.0M148.0 4.0L152.0 7.0L148.0 10.0" in html
    assert "L" not in re.findall(r'class="whisker" d="([^"]+)"', cell(people=PEOPLE))[0]


def test_the_value_that_favours_nobody_is_a_line() -> None:
    assert '<line class="neutral" x1="80.0" x2="80.0"' in cell("0 1 neutral=0.5", people=PEOPLE)
    assert "neutral" not in cell(people=PEOPLE)


def test_the_head_of_a_column_says_what_its_scale_reaches_from_and_to() -> None:
    html = rendered("{% scale 0.5 1 as column %}{% interval_axis column %}")
    assert re.findall(r">([^<>]+)</text>", html) == ["50%", "75%", "100%"]
    html = rendered("{% scale -1 1 as_percent=False as column %}{% interval_axis column %}")
    assert re.findall(r">([^<>]+)</text>", html) == ["−1.00", "0.00", "1.00"]


def test_a_scale_without_a_length_is_refused() -> None:
    with pytest.raises(ValueError, match="has no length"):
        scale(1, 1)
