"""A shift by keyboard alone, and who does not want single keys."""

import secrets

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import NewPage
from tests.browser.review_study import ASPECTS, Study, choose_all, expect_other_than, expect_revealed, make_study, shown
from tests.helpers.running_product import Product

pytestmark = [pytest.mark.browser, pytest.mark.worker]


@pytest.fixture(scope="module")
def study(product: Product, tmp_path_factory: pytest.TempPathFactory) -> Study:
    return make_study(product, tmp_path_factory.mktemp("study"), comparisons=12)


@pytest.fixture
def desk(study: Study, browser: Browser, new_page: NewPage) -> Page:
    """The review page of a person of its own."""
    page = new_page(storage_state=study.person(browser, f"person{secrets.token_hex(3)}"))
    page.goto(study.address)
    return page


def checked(page: Page) -> list[str]:
    values: list[str] = page.eval_on_selector_all("#choices input:checked", "all => all.map(one => one.value)")
    return values


def test_choices_aspects_and_the_way_on_need_no_mouse(desk: Page) -> None:
    first = shown(desk)
    for key in ("a", "t", "b", "ArrowLeft", "ArrowRight", "a"):
        desk.keyboard.press(key)
    assert checked(desk) == ["A", "tie", "B", "A", "B", "A"]
    desk.keyboard.press("2")
    expect(desk.locator("[data-current]")).to_have_attribute("data-aspect", ASPECTS[1])
    desk.keyboard.press("ArrowDown")
    desk.keyboard.press("b")
    assert checked(desk) == ["A", "tie", "B", "A", "B", "A"]
    desk.keyboard.press("Enter")
    expect_revealed(desk)
    desk.keyboard.press("Enter")
    expect_other_than(desk, first)
    desk.keyboard.press("p")
    expect(desk.locator("#comparison")).to_have_attribute("data-comparison", first)
    expect(desk.locator("#panel")).to_have_attribute("data-stage", "done")


def test_undo_after_the_reveal_takes_back_the_final_choices_only(desk: Page) -> None:
    first = shown(desk)
    choose_all(desk)
    desk.keyboard.press("Enter")
    expect_revealed(desk)
    desk.keyboard.press("Enter")
    expect_other_than(desk, first)
    desk.keyboard.press("u")
    expect(desk.locator("#panel")).to_have_attribute("data-stage", "confirm")
    expect(desk.locator("#comparison")).to_have_attribute("data-comparison", first)
    expect(desk.locator("#agreement")).to_be_visible()


def test_skipping_asks_for_a_reason_and_undo_brings_it_back(desk: Page) -> None:
    first = shown(desk)
    desk.keyboard.press("s")
    desk.keyboard.type("too long for a and b")
    desk.keyboard.press("Enter")
    expect_other_than(desk, first)
    expect(desk.locator("#undo")).to_have_attribute(
        "action", f"{desk.url.rpartition('/')[0]}/{first}/undo".replace(desk.evaluate("location.origin"), "")
    )
    desk.keyboard.press("u")
    expect(desk.locator("#comparison")).to_have_attribute("data-comparison", first)


def test_keys_do_nothing_while_somebody_writes_composes_holds_a_modifier_or_reads_the_sheet(desk: Page) -> None:
    desk.keyboard.press("n")
    desk.keyboard.type("a tie b x 1 ?")
    assert checked(desk) == []
    expect(desk.locator("#note-text")).to_have_value("a tie b x 1 ?")
    desk.keyboard.press("Escape")
    for key in ("Control+b", "Alt+a", "Shift+A", "Meta+t"):
        desk.keyboard.press(key)
    desk.evaluate(
        "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'a', isComposing: true, bubbles: true}))"
    )
    assert checked(desk) == []
    desk.keyboard.press("?")
    expect(desk.locator("#keys")).to_be_visible()
    desk.keyboard.press("a")
    assert checked(desk) == []
    desk.keyboard.press("Escape")
    expect(desk.locator("#keys")).to_be_hidden()
    desk.keyboard.press("a")
    assert checked(desk) == ["A"]


def test_without_single_keys_characters_act_with_alt_only(desk: Page, study: Study) -> None:
    desk.goto("/account")
    desk.get_by_label("Single keys act on the review page").uncheck()
    desk.get_by_role("button", name="Save").click()
    desk.goto(study.address)
    for key in ("a", "1", "c", "?"):
        desk.keyboard.press(key)
    assert checked(desk) == []
    expect(desk.locator("#keys")).to_be_hidden()
    desk.keyboard.press("Alt+t")
    assert checked(desk) == ["tie"]
    desk.keyboard.press("ArrowRight")
    assert checked(desk) == ["tie", "B"]
    desk.keyboard.press("Alt+?")
    expect(desk.locator("#keys")).to_be_visible()
    expect(desk.locator("#keys")).to_contain_text("act together with Alt")
