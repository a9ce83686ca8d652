"""Every page that links lead to, at desk and phone width, in light and dark."""

import json
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, StorageState, ViewportSize, expect

from tests.browser.axe import faults_found_by_axe
from tests.browser.conftest import NewPage, too_wide
from tests.helpers.running_product import Product

pytestmark = [pytest.mark.browser, pytest.mark.worker]


class Look(NamedTuple):
    viewport: ViewportSize
    scheme: Literal["light", "dark"]
    is_for_axe: bool = False


DESK: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
# 641 is the narrowest window in which the places are not in a menu.
WINDOWS: list[ViewportSize] = [{"width": width, "height": 800} for width in (1920, 1440, 1024, 900, 768, 641)]
PHONES: list[ViewportSize] = [{"width": width, "height": 800} for width in (360, 480)]
LOOKS = {
    "desk": (Look(DESK, "light", True), Look(DESK, "dark"), *(Look(window, "light") for window in WINDOWS)),
    "phone": (Look(PHONE, "light"), Look(PHONE, "dark", True), *(Look(phone, "light") for phone in PHONES)),
}
DOWNLOADS = re.compile(r"/file$|\.json$")
NAME_THE_OWNER = """
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
    for kind in (
        "/help",
        "/account",
        "/e/example/results",
        "/e/example/review",
        "/e/example/judges/rubrics/1/next?text=overall",
    ):
        assert kind in addresses


@pytest.mark.parametrize("device", LOOKS)
def test_no_page_is_wider_than_its_window_or_has_a_fault_that_axe_finds(
    new_page: NewPage, owner_state: StorageState, addresses: list[str], device: str
) -> None:
    """Each page is opened once, and then looked at in every width and colour scheme."""
    page = new_page(
        storage_state=owner_state,
        viewport=LOOKS[device][0].viewport,
        is_mobile=device == "phone",
        reduced_motion="reduce",  # else the colors of one scheme fade into those of the other while axe reads them
    )
    wide, faults = {}, {}
    for address in addresses:
        page.goto(address)
        for look in LOOKS[device]:
            page.set_viewport_size(look.viewport)
            page.emulate_media(color_scheme=look.scheme)
            if pixels := too_wide(page):
                wide[address, str(look)] = pixels
            if look.is_for_axe and (found := faults_found_by_axe(page)):
                faults[address] = found
    assert not wide, "\n".join(f"{at}: {pixels} px" for at, pixels in wide.items())
    assert not faults, json.dumps(faults, indent=1)


def test_the_navigation_opens_on_a_phone_without_scripts(new_page: NewPage, owner_state: StorageState) -> None:
    page = new_page(viewport=PHONE, java_script_enabled=False, storage_state=owner_state)
    page.goto("/e/example/")
    expect(page.get_by_role("link", name="Settings", exact=True)).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
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
    expect(owner_page.get_by_role("link", name="Skip to content")).to_be_focused()
    owner_page.keyboard.press("Enter")
    expect(owner_page.locator("main")).to_be_focused()
