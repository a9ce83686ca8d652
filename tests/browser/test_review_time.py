"""Time on task: counted while the page is seen and something is done, and stored with the review."""

import secrets

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import NewPage
from tests.browser.review_study import (
    Study,
    choose_all,
    expect_all_sent,
    expect_next_is_here,
    expect_other_than,
    make_study,
    shown,
)
from tests.helpers.running_product import Product

pytestmark = [pytest.mark.browser, pytest.mark.worker]

SECOND = 1000
BESIDES = 20 * SECOND  # the page's clock goes on while a test presses keys on a busy machine


@pytest.fixture(scope="module")
def study(product: Product, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Without a judge: the first choices are final, and Enter leads on."""
    return make_study(product, tmp_path_factory.mktemp("study"), comparisons=20, judged=False)


@pytest.fixture
def name() -> str:
    """A person of the test's own."""
    return f"person{secrets.token_hex(3)}"


@pytest.fixture
def review_page(study: Study, name: str, browser: Browser, new_page: NewPage) -> Page:
    """The review page, in a browser whose clock the test moves on."""
    page = new_page(storage_state=study.person(browser, name))
    page.clock.install()
    page.goto(study.address)
    expect_next_is_here(page)
    return page


def save(page: Page) -> None:
    first = shown(page)
    choose_all(page)
    page.keyboard.press("Enter")
    expect_other_than(page, first)
    expect_all_sent(page)


def hide(page: Page, *, hidden: bool) -> None:
    """As another tab in front of it does."""
    page.evaluate(
        """hidden => {
            Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


def test_nothing_is_counted_from_thirty_seconds_after_the_last_thing_done(
    review_page: Page, study: Study, name: str
) -> None:
    review_page.keyboard.press("a")
    review_page.clock.run_for(20 * SECOND)
    review_page.mouse.move(300, 300)
    review_page.clock.run_for(600 * SECOND)
    save(review_page)
    (review,) = study.reviews(name)
    assert 48 * SECOND <= review["active_ms"] < 50 * SECOND + BESIDES


def test_nothing_is_counted_while_the_page_is_not_seen(review_page: Page, study: Study, name: str) -> None:
    hide(review_page, hidden=True)
    for place in range(6):
        review_page.mouse.move(300, 300 + place)
        review_page.clock.run_for(20 * SECOND)
    hide(review_page, hidden=False)
    save(review_page)
    (review,) = study.reviews(name)
    assert 0 < review["active_ms"] < BESIDES


def test_a_machine_that_slept_did_not_work(review_page: Page, study: Study, name: str) -> None:
    review_page.evaluate(
        """() => {
            const before = performance.now.bind(performance);
            performance.now = () => before() + 3_600_000;
            document.dispatchEvent(new Event("pointermove"));  // the hand that wakes it comes before any timer
        }"""
    )
    save(review_page)
    (review,) = study.reviews(name)
    assert 0 < review["active_ms"] < BESIDES


def test_a_draft_is_counted_on_and_the_next_comparison_begins_at_nothing(
    review_page: Page, study: Study, name: str
) -> None:
    review_page.keyboard.press("a")
    review_page.clock.run_for(25 * SECOND)
    review_page.keyboard.press("b")
    review_page.reload()  # at once: the draft is on its way while the page is made anew
    expect_next_is_here(review_page)
    review_page.clock.run_for(25 * SECOND)
    save(review_page)
    (review,) = study.reviews(name)
    assert 49 * SECOND <= review["active_ms"] < 50 * SECOND + BESIDES
    save(review_page)
    assert min(review["active_ms"] for review in study.reviews(name)) < BESIDES
