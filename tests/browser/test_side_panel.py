"""A cell of a confusion matrix opens its comparisons in a panel beside the results."""

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def test_a_cell_opens_its_comparisons_and_escape_leads_back(owner_page: Page) -> None:
    owner_page.goto("/e/example/results/agreement?aspect=helpfulness")
    cell = owner_page.locator(".report-matrix td a").first
    count = int(cell.locator(".count").inner_text())
    cell.click()
    panel = owner_page.locator("#side-panel")
    expect(panel.get_by_role("heading")).to_be_focused()
    expect(panel.locator("li")).to_have_count(count)
    assert "/results/agreement" in owner_page.url
    owner_page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(cell).to_be_focused()
