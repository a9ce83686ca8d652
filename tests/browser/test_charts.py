"""Plots before a real Chromium, under the product's own policy and with its own files."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.template import engines
from playwright.sync_api import Page, Route, ViewportSize, expect

from evaluations.charts.themes import PAGE_THEME
from tests.browser.axe import faults_found_by_axe
from tests.browser.conftest import NewPage, too_wide
from tests.helpers.chart_samples import make_every_chart
from tests.helpers.running_product import Product

pytestmark = [pytest.mark.browser, pytest.mark.worker]

DESK: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
PLOTS = make_every_chart(PAGE_THEME)
AGAIN = replace(PLOTS[0], name="again")
HTML = """<!doctype html><html lang="en" data-theme="system"><head><meta charset="utf-8"><title>Plots</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="{% static 'css/app.css' %}"></head>
<body><main><h1>Plots</h1>
{% for plot in plots %}<section class="card">{% include "_plot.html" with files="/sign-in?as=" %}</section>{% endfor %}
<details id="closed"><summary>More</summary>{% include "_plot.html" with plot=again %}</details>
</main><script type="module" src="{% static 'js/plots.js' %}"></script></body></html>"""
Show = Callable[..., Page]


@pytest.fixture
def show(new_page: NewPage, product: Product) -> Show:
    """A page of plots as the product would answer it: with the headers of one that it answers, policy included."""

    def answer(route: Route) -> None:
        headers = route.fetch(url=f"{product.address}/sign-in").headers
        policy = headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        html = engines["django"].from_string(HTML).render({"plots": PLOTS, "again": AGAIN})
        route.fulfill(body=html, headers={"content-type": "text/html", "content-security-policy": policy})

    def make(**options: Any) -> Page:
        page = new_page(**options)
        page.route("**/plots", answer)
        page.goto("/plots")
        return page

    return make


def expect_drawn(page: Page) -> None:
    expect(page.locator(".card .plot-canvas svg.marks")).to_have_count(len(PLOTS))


@pytest.mark.parametrize(("viewport", "scheme"), [(DESK, "light"), (PHONE, "dark")], ids=["desk-light", "phone-dark"])
def test_every_plot_is_drawn_under_the_strict_policy(show: Show, viewport: ViewportSize, scheme: str) -> None:
    """What the browser complains of fails the test: see conftest."""
    page = show(viewport=viewport, color_scheme=scheme, is_mobile=viewport is PHONE)
    expect_drawn(page)
    assert too_wide(page) == 0
    assert faults_found_by_axe(page) == []


def test_a_plot_has_the_room_that_was_kept_for_it(show: Show) -> None:
    for viewport in (DESK, PHONE):
        page = show(viewport=viewport)
        expect_drawn(page)
        for plot in PLOTS:
            place = page.locator(f".card #plot-{plot.name} .plot-drawing")
            drawing = place.locator("svg.marks")
            assert place.evaluate("place => place.clientHeight") == plot.height
            assert drawing.get_attribute("height") == str(plot.height)
            assert drawing.get_attribute("width") == str(place.evaluate("place => place.clientWidth"))


def test_plots_follow_the_width_of_their_place(show: Show) -> None:
    page = show(viewport=DESK)
    expect_drawn(page)
    place = page.locator(".card .plot-drawing").first
    wide = place.evaluate("place => place.clientWidth")
    page.set_viewport_size(PHONE)
    narrow = place.evaluate("place => place.clientWidth")
    assert narrow < wide / 2
    expect(place.locator("svg.marks")).to_have_attribute("width", str(narrow))
    assert too_wide(page) == 0
    # Names beside rows are shorter where there is less room.
    expect(place.locator("svg.marks")).to_contain_text("model-of…-2026-01")
    page.set_viewport_size(DESK)
    expect(place.locator("svg.marks")).to_have_attribute("width", str(wide))


def test_the_head_of_the_ranks_stands_below_the_legend_on_a_phone(show: Show) -> None:
    page = show(viewport=PHONE, is_mobile=True)
    expect_drawn(page)
    drawing = page.locator(".card #plot-ranking-of-three svg.marks")
    legend = drawing.locator(".role-legend").last.bounding_box()
    head = drawing.locator(".role-axis-title", has_text="Rank: reviewers").bounding_box()
    assert legend is not None
    assert head is not None
    assert legend["y"] + legend["height"] <= head["y"] + 1


def test_a_plot_in_a_closed_part_is_drawn_when_it_is_opened(show: Show) -> None:
    page = show()
    expect_drawn(page)
    drawing = page.locator("#closed .plot-canvas svg.marks")
    expect(drawing).to_have_count(0)
    page.locator("#closed > summary").click()
    expect(drawing).to_be_visible()


def test_a_theme_colours_the_plots_without_drawing_them_again(show: Show) -> None:
    page = show(color_scheme="light")
    expect_drawn(page)
    label = page.locator(".plot-canvas svg.marks text").first
    colour = "text => getComputedStyle(text).fill"
    light = label.evaluate(colour)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    dark = label.evaluate(colour)
    assert red_of(light) < 128 < red_of(dark)
    page.emulate_media(media="print")
    assert label.evaluate(colour) == light


def red_of(colour: str) -> int:
    (red, *_) = re.findall(r"\d+", colour)
    return int(red)


def test_a_pointer_reads_the_numbers_and_the_whole_name(show: Show) -> None:
    page = show()
    expect_drawn(page)
    page.locator("#plot-win-rates .plot-canvas .role-mark path").first.hover()
    tooltip = page.locator("#vg-tooltip-element")
    expect(tooltip).to_be_visible()
    expect(tooltip).to_contain_text("model-of-a-very-long-name-indeed-2026-01")
    expect(tooltip).to_contain_text("36.0% to 44.0%")
    assert tooltip.evaluate("tooltip => getComputedStyle(tooltip).position") == "fixed"


def test_a_plot_is_one_image_with_a_description(show: Show) -> None:
    page = show()
    expect_drawn(page)
    expect(page.get_by_role("img", name=PLOTS[0].description).first).to_be_visible()
    assert page.locator(".plot-canvas [role='graphics-symbol']").count() == 0


def test_without_a_script_the_table_and_the_picture_are_there(show: Show) -> None:
    page = show(java_script_enabled=False)
    figure = page.locator(".card #plot-win-rates")
    expect(figure.locator(".plot-drawing")).to_be_hidden()
    expect(figure.get_by_role("img")).to_have_attribute("src", "/sign-in?as=svg")
    figure.locator("summary").click()
    expect(figure.get_by_role("cell", name="36.0% to 44.0%").first).to_be_visible()
