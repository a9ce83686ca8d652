"""Every page that links lead to, at desk and phone width, in light and dark."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from tests.browser.axe import faults_found_by_axe
from tests.browser.conftest import NewPage, too_wide
from tests.helpers.running_product import Product

pytestmark = [pytest.mark.browser, pytest.mark.worker]

DESK = {"width": 1280, "height": 900}
TABLET = {"width": 1024, "height": 768}
JUST_TABS = {"width": 1121, "height": 800}  # the narrowest window in which the tabs are not in a menu
PHONE = {"width": 390, "height": 844}
DOWNLOADS = re.compile(r"/file$|\.json$")
NAME_THE_OWNER = """
from evaluations.models import User
User.objects.filter(username="owner").update(display_name="{name}")
"""
OF_OTHER_TESTS = re.compile(r"/e/(?!example/)")


@pytest.fixture(scope="module")
def addresses(browser: Browser, product: Product, owner_state: StorageState) -> Iterator[list[str]]:
    """One address of each kind that links lead to, where who did it all has the longest of names."""
    product.manage("shell", "-c", NAME_THE_OWNER.format(name="n" * 120))
    context = browser.new_context(base_url=product.address, storage_state=owner_state)
    found = walk(context.new_page())
    found += (
        product.manage(
            "shell",
            "-c",
            "from tests.factories.long_text_evaluation import make_long_text_pages; print(*make_long_text_pages())",
        )
        .stdout.splitlines()[-1]
        .split()
    )
    context.close()
    yield found
    product.manage("shell", "-c", NAME_THE_OWNER.format(name=""))


def walk(page: Page) -> list[str]:
    found, waiting, kinds = [], ["/"], set[str]()
    while waiting:
        address = waiting.pop(0)
        kind = re.sub(r"\d+", "1", address.partition("?")[0])
        if kind in kinds or DOWNLOADS.search(kind) or OF_OTHER_TESTS.match(kind):
            continue
        kinds.add(kind)
        answer = page.goto(address)
        assert answer is not None
        assert answer.status == 200, address
        found.append(address)
        waiting += page.eval_on_selector_all(
            "a[href^='/']", "links => links.map(link => link.getAttribute('href').split('#')[0])"
        )
    return found


def test_links_lead_to_pages_that_work(addresses: list[str]) -> None:
    for kind in ("/help", "/account", "/e/example/report", "/e/example/review", "/e/example/rubrics/1/next"):
        assert kind in addresses


@pytest.mark.parametrize(
    ("viewport", "scheme"),
    [(DESK, "light"), (DESK, "dark"), (TABLET, "light"), (JUST_TABS, "light"), (PHONE, "light"), (PHONE, "dark")],
    ids=["desk-light", "desk-dark", "tablet", "just-tabs", "phone-light", "phone-dark"],
)
def test_no_page_is_wider_than_its_window(
    new_page: NewPage, owner_state: StorageState, addresses: list[str], viewport: dict[str, int], scheme: str
) -> None:
    options: dict[str, Any] = {"viewport": viewport, "color_scheme": scheme, "storage_state": owner_state}
    page = new_page(**options, is_mobile=viewport is PHONE)
    wide = {}
    for address in addresses:
        page.goto(address)
        if pixels := too_wide(page):
            wide[address] = pixels
    assert wide == {}


@pytest.mark.parametrize(("viewport", "scheme"), [(DESK, "light"), (PHONE, "dark")], ids=["desk-light", "phone-dark"])
def test_no_page_has_a_fault_that_axe_finds(
    new_page: NewPage, owner_state: StorageState, addresses: list[str], viewport: dict[str, int], scheme: str
) -> None:
    page = new_page(viewport=viewport, color_scheme=scheme, storage_state=owner_state, is_mobile=viewport is PHONE)
    found = {}
    for address in addresses:
        page.goto(address)
        if faults := faults_found_by_axe(page):
            found[address] = faults
    assert not found, json.dumps(found, indent=1)


def test_the_navigation_opens_on_a_phone_without_scripts(new_page: NewPage, owner_state: StorageState) -> None:
    page = new_page(viewport=PHONE, java_script_enabled=False, storage_state=owner_state)
    page.goto("/e/example/")
    expect(page.get_by_role("link", name="Settings", exact=True)).to_be_hidden()
    page.get_by_role("button", name="Pages").click()
    page.get_by_role("link", name="Settings", exact=True).click()
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()


def test_a_theme_that_was_chosen_wins_over_the_system(new_page: NewPage, owner_state: StorageState) -> None:
    page = new_page(color_scheme="light", storage_state=owner_state)
    page.goto("/account")
    for theme, is_dark in (("dark", True), ("system", False)):
        page.get_by_label("Appearance").select_option(theme)
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.locator("html")).to_have_attribute("data-theme", theme)
        red = int(page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]"))
        assert (red < 128) is is_dark


def test_the_first_key_skips_to_the_content(owner_page: Page) -> None:
    owner_page.goto("/e/example/")
    owner_page.keyboard.press("Tab")
    expect(owner_page.get_by_role("link", name="Skip to the content")).to_be_focused()
    owner_page.keyboard.press("Enter")
    expect(owner_page.locator("main")).to_be_focused()
