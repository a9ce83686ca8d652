"""The command palette, the search key and the switch between light and dark, on every page."""

import re

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.worker]


def test_the_palette_leads_to_a_place_by_keys(owner_page: Page) -> None:
    owner_page.goto("/e/example/")
    owner_page.keyboard.press("Control+k")
    owner_page.keyboard.type("memb")
    expect(owner_page.get_by_role("option").first).to_contain_text("Members")
    owner_page.keyboard.press("Enter")
    expect(owner_page).to_have_url(re.compile("/e/example/settings/members$"))


def test_the_palette_finds_evaluations_by_name(owner_page: Page) -> None:
    owner_page.goto("/help")
    owner_page.get_by_role("button", name="Search").click()
    owner_page.keyboard.type("two assist")
    owner_page.get_by_role("option").filter(has_text="Example").click()
    expect(owner_page).to_have_url(re.compile("/e/example/$"))


def test_the_palette_searches_comparisons(owner_page: Page) -> None:
    owner_page.goto("/e/example/results")
    owner_page.keyboard.press("/")
    owner_page.keyboard.type("sky")
    owner_page.keyboard.press("ArrowUp")
    expect(owner_page.locator("#palette [aria-selected='true']")).to_have_count(1)
    owner_page.get_by_role("option").filter(has_text="Search comparisons").click()
    expect(owner_page).to_have_url(re.compile(r"/data/comparisons\?q=sky$"))


def test_the_search_key_goes_to_the_search_of_the_page(owner_page: Page) -> None:
    owner_page.goto("/e/example/data/comparisons")
    owner_page.keyboard.press("/")
    expect(owner_page.get_by_role("searchbox", name="Search")).to_be_focused()
    expect(owner_page.locator("#palette")).to_be_hidden()


def test_the_theme_is_switched_at_once_and_kept(owner_page: Page) -> None:
    owner_page.emulate_media(color_scheme="light")
    owner_page.goto("/e/example/")
    with owner_page.expect_response(re.compile("/account/theme$")):
        owner_page.get_by_role("button", name="Switch between light and dark").click()
    expect(owner_page.locator("html")).to_have_attribute("data-theme", "dark")
    owner_page.goto("/help")
    expect(owner_page.locator("html")).to_have_attribute("data-theme", "dark")
    with owner_page.expect_response(re.compile("/account/theme$")):
        owner_page.get_by_role("button", name="Switch between light and dark").click()
    expect(owner_page.locator("html")).to_have_attribute("data-theme", "light")
