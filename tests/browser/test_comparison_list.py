"""The list of comparisons while somebody searches in it and chooses from it; and names too long for a line."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import too_wide

pytestmark = [pytest.mark.browser, pytest.mark.worker]

ONE_ROW = (
    b'{"query_id": "1", "query": "q", "candidate_a": "a", "response_a": "x", "candidate_b": "b", "response_b": "y"}'
)


def search(page: Page, words: str) -> None:
    page.goto("/e/example/data/comparisons")
    page.get_by_role("searchbox", name="Search").press_sequentially(words)


def test_what_is_ticked_after_a_search_stays_ticked(owner_page: Page) -> None:
    """Leaving the field asks for nothing that was not asked for while it was typed in."""
    search(owner_page, "water")
    expect(owner_page).to_have_url(re.compile(r"\?q=water$"))
    asked: list[str] = []
    owner_page.on("request", lambda request: asked.append(f"{request.resource_type} {request.url}"))
    owner_page.get_by_label(re.compile(r"Select comparison \d+")).first.click()
    owner_page.get_by_text("Bulk actions").click()
    expect(owner_page.locator("[data-selected-label]")).to_have_text("(1 selected)")
    assert [one for one in asked if not one.startswith("other ")] == []  # the browser's own: the sign on its tab


def test_a_search_that_cannot_be_says_so_while_one_types(owner_page: Page) -> None:
    search(owner_page, "-water")
    told = owner_page.locator("#list").get_by_role("alert")
    expect(told).to_contain_text("Add at least one word to find")
    expect(owner_page.locator("#list tbody tr")).to_have_count(0)


def test_one_box_chooses_the_page_and_shows_when_it_is_not_whole(owner_page: Page) -> None:
    owner_page.goto("/e/example/data/comparisons")
    whole = owner_page.get_by_label("Select all on this page")
    boxes = owner_page.get_by_label(re.compile(r"Select comparison \d+"))
    whole.check()
    assert all(box.is_checked() for box in boxes.all())
    boxes.first.uncheck()
    assert whole.evaluate("box => box.indeterminate")
    expect(owner_page.locator("#act")).to_be_in_viewport()
    owner_page.get_by_text("Bulk actions").click()
    expect(owner_page.locator("[data-selected-label]")).to_have_text(f"({boxes.count() - 1} selected)")


def test_a_file_with_a_long_name_makes_no_page_wider_than_its_window(owner_page: Page) -> None:
    owner_page.goto("/e/example/data")
    file = {"name": f"{'n' * 150}.csv", "mimeType": "text/csv", "buffer": ONE_ROW}
    owner_page.get_by_label("Drop files here, or choose them").set_input_files(file)  # type: ignore[arg-type]
    expect(owner_page.get_by_role("button", name="Import 1 row")).to_be_visible()
    assert not too_wide(owner_page)
    owner_page.get_by_role("button", name="Discard").click()
    expect(owner_page.get_by_role("link", name="n" * 150)).to_be_visible()
    assert not too_wide(owner_page)
