"""Numbers in the cells of a table, and what stands once below it."""

import re

import pytest
from django.template import engines

from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.templatetags.remarks import Remarks, letter
from tests.helpers.page_text import laid_out

HALF = Estimate(0.706, 40).with_interval(0.664, 0.758, "t over 1,040 clusters")


def rendered(template: str, **context: object) -> str:
    head = "{% load report %}{% notes as reasons %}"
    return laid_out(engines["django"].from_string(head + template).render(context))


def words(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html).strip()


@pytest.mark.parametrize(
    ("kind", "number", "said"),
    [
        ("percent", HALF, "71% [66–76]"),
        ("decimal", HALF, "0.71 [0.66–0.76]"),
        ("difference", HALF, "+71 [+66 to +76]"),
        ("decimal", Estimate(-0.2, 9).with_interval(-0.5, 0.1, "t over 9 clusters"), "−0.20 [−0.50 to 0.10]"),
        ("decimal", Estimate(-0.001, 9).with_interval(-0.004, 0.001, "t over 9 clusters"), "0.00 [0.00 to 0.00]"),
        ("difference", Estimate(-0.052, 9).with_interval(-0.104, 0.001, "t over 9 clusters"), "−5 [−10 to 0]"),
        ("percent", Estimate(0.5, 3).without_interval("Too few."), "50%a"),
        ("percent", undefined_estimate("Nobody voted."), "n/aa"),
        ("percent", None, "–"),
    ],
)
def test_a_cell_says_the_value_and_its_interval_or_points_to_the_reason(
    kind: str, number: Estimate | None, said: str
) -> None:
    assert words(rendered(f'{{% figure number "{kind}" reasons %}}', number=number)) == said


def test_each_reason_stands_once_below_the_table_under_its_letter() -> None:
    numbers = [undefined_estimate("One."), undefined_estimate("Two."), undefined_estimate("One.")]
    cells = '{% for number in numbers %}{% figure number "percent" reasons %} {% endfor %}'
    html = rendered(cells + '{% include "report/_notes.html" %}', numbers=numbers)
    assert words(html).startswith("n/aa n/ab n/aa")
    assert re.findall(r"<li>([^<]+)</li>", html) == ["One.", "Two."]


def test_how_intervals_were_made_stands_below_the_table() -> None:
    html = rendered(
        '{% figure number "percent" reasons %}{% include "report/_notes.html" with rule="By hand." %}', number=HALF
    )
    assert "By hand. In brackets: pointwise 95% CIs, t over 1,040 clusters." in html


def test_what_differs_in_a_count_of_clusters_alone_is_said_once() -> None:
    below = Remarks()
    for rule in (
        "t over 40 clusters",
        "Wilson, 80 ÷ design effect 1.25 over 60 clusters",
        "t over 1,200 clusters",
        "Wilson, 9 ÷ design effect 1.00 over 9 clusters",
        "by draws",
    ):
        below.made_by(rule)
    assert below.rules == [
        "t over 40 to 1,200 clusters",
        "Wilson, n ÷ design effect over 9 to 60 clusters",
        "by draws",
    ]
    marks = [words(below.mark(f"It rests on {count} clusters; 40 are needed.")) for count in (33, 30)]
    assert marks == ["a", "a"]
    assert below.reasons == ["It rests on 30 to 33 clusters; 40 are needed."]


def test_counts_of_one_reason_are_gathered_each_in_its_own_place() -> None:
    below = Remarks()
    few = "Too few clusters for a CI ({} < 40). {} clusters of uneven size tell no more than that."
    marks = [words(below.mark(few.format(*counts))) for counts in (("12", "1,000"), ("33", "60"))]
    assert marks == ["a", "a"]
    assert below.reasons == [few.format("12 to 33", "60 to 1,000")]


def test_letters_go_on_after_z_as_in_a_list() -> None:
    assert [letter(place) for place in (0, 25, 26, 27, 51, 52)] == ["a", "z", "aa", "ab", "az", "ba"]


def test_a_rule_written_over_several_lines_of_a_template_stands_in_one_before_the_notes() -> None:
    below = rendered(
        """{% figure number "percent" reasons as shown %}{% table_notes %}
             A tie counts
             as half a win.
           {% endtable_notes %}""",
        number=HALF,
    )
    assert words(below).startswith("A tie counts as half a win. In brackets: pointwise 95% CIs, t over 1,040 clusters.")
    assert "A tie counts as half a win." in below
