"""The report before a real Chromium: chosen from without a script, on a phone, and on paper."""

import re

import pytest
from playwright.sync_api import Page, StorageState, ViewportSize, expect

from tests.browser.conftest import NewPage, too_wide

pytestmark = [pytest.mark.browser, pytest.mark.worker]

REPORT = "/e/example/results/agreement"
OVERVIEW = ".report-overview[aria-labelledby=overview]"
PHONE: ViewportSize = {"width": 390, "height": 844}
A4: ViewportSize = {"width": 794, "height": 1123}  # at 96 pixels an inch


def test_filters_are_chosen_and_taken_out_without_a_script(new_page: NewPage, owner_state: StorageState) -> None:
    page = new_page(java_script_enabled=False, storage_state=owner_state)
    page.goto(REPORT)
    page.get_by_text("More filters").click()
    page.locator("fieldset", has_text="Reviewers").get_by_text(re.compile(r"^\s*all \d+")).click()
    page.get_by_role("checkbox").first.check()
    page.get_by_label("Split votes").select_option("drop")
    page.get_by_role("button", name="Apply").click()
    assert "reviewer=" in page.url
    assert "split_rule=drop" in page.url
    chips = page.get_by_role("list", name="Active filters").get_by_role("link")
    expect(chips).to_have_count(2)
    expect(page.get_by_label("Split votes")).to_be_visible()  # what is in use is not folded away
    chips.last.click()
    expect(chips).to_have_count(1)
    assert "split_rule" not in page.url
    page.get_by_role("link", name="Win rates", exact=True).click()
    assert "reviewer=" in page.url


def test_agreement_fits_on_three_screens(new_page: NewPage, owner_state: StorageState) -> None:
    """Of three judges on six aspects."""
    page = new_page(viewport={"width": 1440, "height": 900}, storage_state=owner_state)
    page.goto(REPORT)
    expect(page.locator(".report-matrix")).to_have_count(18)
    assert page.evaluate("document.documentElement.scrollHeight") <= 2500


def test_the_overview_is_sorted_and_laid_out_by_links(owner_page: Page) -> None:
    owner_page.goto(REPORT)
    expect(owner_page.locator(OVERVIEW)).to_be_hidden()
    owner_page.get_by_text("Judge vs. human ceiling", exact=True).first.click()
    owner_page.get_by_role("link", name="Difference").click()
    expect(owner_page.get_by_role("columnheader", name="Difference")).to_have_attribute("aria-sort", "ascending")
    owner_page.get_by_role("link", name="Without ties").click()
    owner_page.get_by_role("link", name="Cohen’s kappa", exact=True).click()
    expect(owner_page.get_by_role("heading", name="Cohen’s kappa without ties")).to_be_visible()
    for asked in ("sort=difference", "ties=without", "measure=cohen_kappa"):
        assert asked in owner_page.url


def test_a_cell_of_a_matrix_opens_its_comparisons(owner_page: Page) -> None:
    owner_page.goto(f"{REPORT}?split_rule=drop&aspect=helpfulness")
    cell = owner_page.locator(".report-matrix td > a").first
    count = int(cell.locator(".count").inner_text())
    cell.click()
    expect(owner_page.locator("#side-panel li")).to_have_count(count)
    owner_page.get_by_role("link", name="in the comparison list").click()
    expect(owner_page.locator(".listed tbody tr")).to_have_count(count)


def test_wide_tables_scroll_inside_their_own_box_and_keep_what_rows_are_about(
    new_page: NewPage, owner_state: StorageState
) -> None:
    page = new_page(viewport=PHONE, is_mobile=True, storage_state=owner_state)
    page.goto(f"{REPORT}?sort=judge")
    box = page.locator(".table-scroll", has=page.locator(OVERVIEW))
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    head = box.get_by_role("rowheader").first
    before = head.bounding_box()
    box.evaluate("box => box.scrollLeft = 300")
    after = head.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(before["x"] - after["x"]) <= 1
    assert too_wide(page) == 0


def test_the_methods_paragraph_is_copied(new_page: NewPage, owner_state: StorageState) -> None:
    page = new_page(storage_state=owner_state, permissions=["clipboard-read", "clipboard-write"])
    page.goto("/e/example/results/methodology")
    methods = page.locator(".report-methods")
    methods.scroll_into_view_if_needed()
    methods.get_by_role("button", name="Copy").click()
    expect(methods.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == methods.locator("pre").text_content()


def test_it_prints_numbers_and_what_was_in_force_but_nothing_to_press(owner_page: Page) -> None:
    owner_page.set_viewport_size(A4)
    owner_page.goto(f"{REPORT}?split_rule=drop")
    owner_page.emulate_media(media="print")
    for pressed in ("nav", "form", ".report-switches", ".report-up"):
        assert [part for part in owner_page.locator(pressed).all() if part.is_visible()] == []
    expect(owner_page.get_by_text("Split votes: excluded")).to_be_visible()
    expect(owner_page.locator(OVERVIEW)).to_be_visible()
    cut = "tables => tables.filter(table => table.offsetParent && table.scrollWidth > innerWidth).length"
    assert owner_page.locator("table").evaluate_all(cut) == 0
    owner_page.goto(REPORT)
    expect(owner_page.get_by_text("No active filters.")).to_be_visible()
