"""A real Chromium before the real product; what the browser complains of fails the test."""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Response,
    StorageState,
    expect,
    sync_playwright,
)

from tests.helpers.running_product import Product

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WARNING_OF_PLOT = "WARN "  # as Vega begins each
NewPage = Callable[..., Page]
expect.set_options(timeout=20_000)  # the machine may be busy with other tests


def chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("JUDGEWEB_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One per module: as long as Playwright is open, no other event loop can run in this thread."""
    path = chromium()
    if path is None:
        missing = "no Chromium on this machine (install chromium, or name one in JUDGEWEB_CHROMIUM)"
        if os.environ.get("JUDGEWEB_REQUIRE_BROWSER") == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def new_page(browser: Browser, product: Product) -> Iterator[NewPage]:
    """Makes pages in contexts of their own: ``new_page(color_scheme="dark", viewport={…})``."""
    contexts: list[BrowserContext] = []
    faults: list[str] = []

    def make(**options: Any) -> Page:
        context = browser.new_context(
            **{"base_url": product.address, "viewport": {"width": 1280, "height": 900}} | options
        )
        watch(context, faults)
        contexts.append(context)
        return context.new_page()

    yield make
    for context in contexts:
        context.close()
    assert faults == [], "the browser complained"


def watch(context: BrowserContext, faults: list[str]) -> None:
    """Note script errors, refusals of the content security policy, warnings of plots, and files that do not come.

    A page or fragment may be answered with 4xx: that is what the test looks at.
    """

    def console(message: ConsoleMessage) -> None:
        is_error = message.type == "error" and not message.text.startswith("Failed to load resource")
        if is_error or message.text.startswith(WARNING_OF_PLOT):
            faults.append(f"{message.text} ({message.location.get('url')})")

    def response(answer: Response) -> None:
        is_page = answer.request.resource_type in ("document", "xhr", "fetch")
        if answer.status >= (500 if is_page else 400):
            faults.append(f"{answer.status} {answer.url}")

    context.on("console", console)
    context.on("weberror", lambda error: faults.append(str(error.error)))
    context.on("response", response)


@pytest.fixture
def page(new_page: NewPage) -> Page:
    """A browser that nobody has signed in with yet."""
    return new_page()


def sign_in(page: Page, link: str) -> None:
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/sign-in" not in url)


@pytest.fixture(scope="module")
def owner_state(browser: Browser, product: Product) -> StorageState:
    """The cookies of the owner, signed in by a link."""
    context = browser.new_context()
    sign_in(context.new_page(), product.new_link())
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def owner_page(new_page: NewPage, owner_state: StorageState) -> Page:
    """A browser in which the owner is signed in."""
    return new_page(storage_state=owner_state)


def too_wide(page: Page) -> int:
    """By how many pixels the page can be scrolled sideways."""
    width: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return max(width, 0)
