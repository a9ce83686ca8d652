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
def desk(study: Study, name: str, browser: Browser, new_page: NewPage) -> Page:
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


def test_nothing_is_counted_from_thirty_seconds_after_the_last_thing_done(desk: Page, study: Study, name: str) -> None:
    desk.keyboard.press("a")
    desk.clock.run_for(20 * SECOND)
    desk.mouse.move(300, 300)
    desk.clock.run_for(600 * SECOND)
    save(desk)
    (review,) = study.reviews(name)
    assert 48 * SECOND <= review["active_ms"] < 50 * SECOND + BESIDES


def test_nothing_is_counted_while_the_page_is_not_seen(desk: Page, study: Study, name: str) -> None:
    hide(desk, hidden=True)
    for place in range(6):
        desk.mouse.move(300, 300 + place)
        desk.clock.run_for(20 * SECOND)
    hide(desk, hidden=False)
    save(desk)
    (review,) = study.reviews(name)
    assert 0 < review["active_ms"] < BESIDES


def test_a_machine_that_slept_did_not_work(desk: Page, study: Study, name: str) -> None:
    desk.evaluate(
        """() => {
            const before = performance.now.bind(performance);
            performance.now = () => before() + 3_600_000;
            document.dispatchEvent(new Event("pointermove"));  // the hand that wakes it comes before any timer
        }"""
    )
    save(desk)
    (review,) = study.reviews(name)
    assert 0 < review["active_ms"] < BESIDES


def test_a_draft_is_counted_on_and_the_next_comparison_begins_at_nothing(desk: Page, study: Study, name: str) -> None:
    desk.keyboard.press("a")
    desk.clock.run_for(25 * SECOND)
    desk.keyboard.press("b")
    desk.reload()  # at once: the draft is on its way while the page is made anew
    expect_next_is_here(desk)
    desk.clock.run_for(25 * SECOND)
    save(desk)
    (review,) = study.reviews(name)
    assert 49 * SECOND <= review["active_ms"] < 50 * SECOND + BESIDES
    save(desk)
    assert min(review["active_ms"] for review in study.reviews(name)) < BESIDES
