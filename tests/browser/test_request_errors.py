"""Parts of pages whose request fails: a sentence says so, and what was entered stays."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, StorageState, expect

from tests.browser.review_study import choose_all, expect_all_sent, expect_other_than, make_study, shown
from tests.helpers.running_product import Product

pytestmark = [pytest.mark.browser, pytest.mark.worker]

FRAGMENT_OF_503 = '<p class="error" role="alert">The database is not responding.</p>'
STAYS = "What you entered is still here."
UNAVAILABLE = f"The site is not responding right now. {STAYS} Try again in a moment."
SENTENCES = {
    503: UNAVAILABLE,
    502: UNAVAILABLE,
    504: UNAVAILABLE,
    429: f"The server received too many requests. {STAYS} Try again in a moment.",
    507: f"The server’s disk is almost full. {STAYS}",
    500: f"The server could not handle this request (error 500). {STAYS}",
    0: f"The server could not be reached. {STAYS} Try again in a moment.",
}


@pytest.fixture
def page(browser: Browser, product: Product, owner_state: StorageState) -> Iterator[Page]:
    """The owner's browser, in which requests may fail and scripts may not."""
    context = browser.new_context(base_url=product.address, storage_state=owner_state)
    errors: list[str] = []
    context.on("weberror", lambda error: errors.append(str(error.error)))
    yield context.new_page()
    context.close()
    assert errors == []


def fail(page: Page, status: int) -> None:
    """From now on, each request of htmx gets this status, or with 0 no connection."""

    def answer(route: Route) -> None:
        if not {"hx-request", "hx-history-restore-request"} & set(route.request.headers):
            route.continue_()
        elif status:
            route.fulfill(status=status, content_type="text/html", body=FRAGMENT_OF_503)
        else:
            route.abort()

    page.route("**/*", answer)


def notice_of(page: Page) -> Locator:
    return page.get_by_role("alert").filter(has=page.get_by_role("button", name="Dismiss"))


@pytest.mark.parametrize("status", SENTENCES)
def test_a_preview_that_fails_says_so_and_keeps_what_was_entered(page: Page, status: int) -> None:
    page.goto("/e/example/judges/rubrics/1/next")
    look = page.locator("#look")
    before = look.inner_text()
    fail(page, status)
    instructions = page.get_by_label("Instructions")
    instructions.fill(f"{instructions.input_value()}\nBe brief.")
    page.get_by_role("button", name="Refresh preview").click()
    expect(notice_of(page)).to_contain_text(SENTENCES[status])
    expect(instructions).to_have_value(re.compile("Be brief"))
    assert look.inner_text() == before
    page.unroute_all()
    page.get_by_role("button", name="Refresh preview").click()
    expect(notice_of(page)).to_be_hidden()
    expect(look).to_contain_text("Be brief.")


def test_a_choice_whose_estimate_fails_is_kept(page: Page) -> None:
    page.goto("/e/example/judges/runs/new")
    page.get_by_text("More options").click()
    fail(page, 503)
    page.get_by_label("Limit").fill("7")
    page.keyboard.press("Tab")
    expect(notice_of(page)).to_contain_text(UNAVAILABLE)
    expect(page.get_by_label("Limit")).to_have_value("7")


def test_words_to_search_for_are_kept(page: Page) -> None:
    page.goto("/e/example/data/comparisons")
    rows = page.locator("#list tbody tr")
    number = rows.count()
    fail(page, 503)
    page.get_by_role("searchbox", name="Search").press_sequentially("water")
    expect(notice_of(page)).to_contain_text(UNAVAILABLE)
    expect(page.get_by_role("searchbox", name="Search")).to_have_value("water")
    assert rows.count() == number > 0


@pytest.mark.parametrize("status", [503, 0])
def test_going_back_to_what_cannot_be_fetched_says_so(page: Page, status: int) -> None:
    page.goto("/e/example/data/comparisons")
    page.get_by_role("searchbox", name="Search").press_sequentially("water")
    expect(page).to_have_url(re.compile("q=water$"))
    fail(page, status)
    page.go_back()
    expect(notice_of(page)).to_contain_text("Reload the page in a moment.")
    page.unroute_all()
    page.go_forward()
    expect(notice_of(page)).to_be_hidden()


def test_a_live_part_that_fails_says_so_once_and_goes_on_updating(page: Page) -> None:
    page.clock.install()
    page.goto("/status")
    fail(page, 503)
    page.clock.run_for(5_000)
    expect(notice_of(page)).to_contain_text(
        "The site is not responding right now. This page updates as soon as it can."
    )
    notice_of(page).get_by_role("button", name="Dismiss").click()
    with page.expect_response("/status"):
        page.clock.run_for(5_000)
    page.clock.run_for(100)
    expect(notice_of(page)).to_be_hidden()
    page.unroute_all()
    measured = page.locator("#status").inner_text()
    with page.expect_response("/status"):
        page.clock.run_for(5_000)
    page.clock.run_for(100)
    expect(page.locator("#status")).not_to_have_text(measured)
    fail(page, 503)
    page.clock.run_for(5_000)
    expect(notice_of(page)).to_be_visible()


def test_the_next_comparison_that_cannot_be_fetched_says_so(
    page: Page, product: Product, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    study = make_study(product, tmp_path_factory.mktemp("study"), judged=False)
    context = browser.new_context(base_url=product.address, storage_state=study.person(browser))
    page = context.new_page()
    page.goto(study.address)
    first = shown(page)
    choose_all(page)
    page.keyboard.press("Enter")
    expect_other_than(page, first)
    expect_all_sent(page)
    page.goto(f"{study.address}/{first}")
    fail(page, 503)
    page.locator("#next").click()
    expect(notice_of(page)).to_contain_text(UNAVAILABLE)
    assert shown(page) == first
    context.close()
