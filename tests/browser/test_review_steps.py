"""Steps that come too early, too late, or from who may not take them any more; and what a skip keeps."""

import re
import secrets

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import NewPage
from tests.browser.review_study import (
    ASPECTS,
    Study,
    choose_all,
    expect_all_sent,
    expect_next_is_here,
    expect_other_than,
    expect_revealed,
    make_study,
    shown,
    unsent,
)
from tests.helpers.running_product import Product

pytestmark = [pytest.mark.browser, pytest.mark.worker]

PHONE = {"width": 390, "height": 844}
REWORD = """
from dataclasses import replace
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.rubrics.services import create_next_version
evaluation = Evaluation.objects.get(slug="{slug}")
version = evaluation.review_rubric
spec = version.spec()
aspects = tuple(replace(aspect, definition="Which is worse?") for aspect in spec.aspects)
changed = create_next_version(version.rubric, replace(spec, aspects=aspects), user=None)
change_evaluation(evaluation, {{"review_rubric": changed}}, user=None)
"""


@pytest.fixture(scope="module")
def study(product: Product, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """With the judge “longest”, to which both responses are equally long: a tie on every aspect."""
    return make_study(product, tmp_path_factory.mktemp("study"), comparisons=40)


@pytest.fixture
def name() -> str:
    return f"person{secrets.token_hex(3)}"


@pytest.fixture
def review_page(study: Study, name: str, browser: Browser, new_page: NewPage) -> Page:
    page = new_page(storage_state=study.person(browser, name))
    page.goto(study.address)
    expect_next_is_here(page)
    return page


# ---- undo


@pytest.mark.parametrize("button", ["#undo button", "#earlier"])
def test_what_goes_back_waits_for_the_step_that_is_on_its_way(button: str, review_page: Page) -> None:
    """The next comparison stands there before the last one is stored: its undo is still that of the one before."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    for stored in (True, False):
        expect_next_is_here(review_page)
        last = shown(review_page)
        choose_all(review_page)
        review_page.keyboard.press("Enter")
        expect_revealed(review_page)
        review_page.route("**/confirm", hold)
        review_page.keyboard.press("Enter")
        expect_other_than(review_page, last)
        if stored:
            let_go(review_page, held)
            expect(review_page.locator("#undo")).to_have_attribute("action", re.compile(f"/{last}/"))
    review_page.locator(button).click()
    let_go(review_page, held)
    expect(review_page.locator("#comparison")).to_have_attribute("data-comparison", last)


def let_go(page: Page, held: "list[Route]") -> None:
    while not held:
        page.wait_for_timeout(50)
    held.pop().continue_()
    page.unroute("**/confirm")


# ---- the reveal


@pytest.mark.parametrize("how", ["click", "key"])
def test_a_second_click_or_enter_does_not_confirm_what_was_not_seen(
    how: str, review_page: Page, study: Study, name: str
) -> None:
    first = shown(review_page)
    choose_all(review_page)
    box = review_page.locator("[data-primary]").bounding_box()
    assert box
    for _ in range(2):
        if how == "click":
            review_page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        else:
            review_page.keyboard.press("Enter")
        expect(review_page.locator("#panel")).to_have_attribute("data-stage", "confirm")
    expect_revealed(review_page)
    assert shown(review_page) == first
    expect(review_page.locator("#panel")).to_have_attribute("data-stage", "confirm")
    review_page.keyboard.press("Enter")
    expect_other_than(review_page, first)


def test_keys_right_after_a_reveal_change_no_choice(review_page: Page) -> None:
    """Somebody who is fast means them for the next comparison."""
    first = shown(review_page)
    choose_all(review_page)
    for key in ("Enter", "Enter"):
        review_page.keyboard.press(key)
    expect(review_page.locator("#panel")).to_have_attribute("data-stage", "confirm")
    for key in ("b", "t", "Shift+B", "Enter"):
        review_page.keyboard.press(key)
    assert review_page.eval_on_selector_all("#choices input:checked", "all => all.map(one => one.value)") == ["A"] * 6
    expect_revealed(review_page)
    assert shown(review_page) == first
    review_page.keyboard.press("t")
    assert review_page.eval_on_selector_all("#choices input:checked", "all => all.map(one => one.value)")[0] == "tie"


def test_where_the_judge_agrees_with_everything_the_second_enter_confirms(review_page: Page) -> None:
    first = shown(review_page)
    choose_all(review_page, "t")
    review_page.keyboard.press("Enter")
    expect(review_page.locator("#panel")).to_have_attribute("data-stage", "confirm")
    assert review_page.locator("[data-primary]").get_attribute("aria-disabled") is None
    review_page.keyboard.press("Enter")
    expect_other_than(review_page, first)


def test_without_motion_the_button_waits_as_long_and_fills_not(
    study: Study, name: str, browser: Browser, new_page: NewPage
) -> None:
    page = new_page(storage_state=study.person(browser, name), reduced_motion="reduce")
    page.goto(study.address)
    choose_all(page)
    page.keyboard.press("Enter")
    expect(page.locator("[data-primary][aria-disabled]")).to_be_attached()
    assert page.evaluate("document.querySelector('[data-primary]').getAnimations({ subtree: true }).length") == 0
    expect_revealed(page)


def test_one_key_confirms_what_agrees_and_goes_to_what_differs(review_page: Page) -> None:
    first = shown(review_page)
    for key in ("t", "t", "a", "t", "b", "t"):
        review_page.keyboard.press(key)
    review_page.keyboard.press("Enter")
    expect_revealed(review_page)
    review_page.keyboard.press("1")
    review_page.keyboard.press("c")
    expect(review_page.locator("[data-current]")).to_have_attribute("data-aspect", ASPECTS[2])
    expect(review_page.locator("[data-aspect=clarity]")).to_be_focused()
    expect(review_page.locator("[data-confirmed]")).to_have_count(4)
    assert shown(review_page) == first
    expect(review_page.locator("#panel")).to_have_attribute("data-stage", "confirm")
    review_page.keyboard.press("Enter")
    expect_other_than(review_page, first)


def test_where_nothing_differs_the_same_key_saves_and_goes_on(review_page: Page, study: Study, name: str) -> None:
    first = shown(review_page)
    choose_all(review_page, "t")
    review_page.keyboard.press("Enter")
    expect(review_page.locator("#panel")).to_have_attribute("data-stage", "confirm")
    expect(review_page.locator("[data-confirm]")).to_have_count(0)
    review_page.keyboard.press("c")
    expect_other_than(review_page, first)
    assert {choice["final"] for choice in study.reviews(name)[0]["choices"].values()} == {"tie"}


def test_on_a_phone_the_reveal_is_read_from_its_beginning(
    study: Study, name: str, browser: Browser, new_page: NewPage
) -> None:
    page = new_page(storage_state=study.person(browser, name), viewport=PHONE, has_touch=True, is_mobile=True)
    page.goto(study.address)
    for group in page.locator("#choices .aspect").all():
        group.locator(".segment.A").click()
    page.get_by_role("button", name="Save").click()
    expect_revealed(page)
    expect(page.locator("#agreement")).to_be_in_viewport()
    expect(page.locator("[data-aspect=helpfulness] .segments")).to_be_in_viewport()


# ---- a skip keeps what was entered


def test_a_skip_keeps_what_was_entered_at_the_last_moment(review_page: Page) -> None:
    first = shown(review_page)
    review_page.keyboard.press("b")
    review_page.keyboard.press("n")
    review_page.keyboard.type("Not my field.")
    review_page.keyboard.press("Escape")
    review_page.keyboard.press("s")
    review_page.keyboard.press("Enter")
    expect_other_than(review_page, first)
    expect_all_sent(review_page)
    review_page.keyboard.press("u")
    expect(review_page.locator("#comparison")).to_have_attribute("data-comparison", first)
    expect(review_page.locator("#choices input:checked")).to_have_count(1)
    expect(review_page.locator("#note-text")).to_have_value("Not my field.")


# ---- who may not any more


def test_who_was_taken_out_is_told_so_beside_the_panel(
    study: Study, review_page: Page, name: str, browser: Browser, new_page: NewPage
) -> None:
    owner = new_page(storage_state=study.person(browser, "owner", "owner"))
    owner.goto(f"/e/{study.slug}/settings/members")
    row = owner.locator("tr", has_text=f"{name}-{study.slug}")
    row.locator("summary", has_text="Remove").click()
    row.get_by_role("button", name="Remove").click()
    owner.wait_for_load_state()
    choose_all(review_page, "b")
    expect(review_page.locator("#draft")).to_contain_text("You are no longer a member here")
    review_page.keyboard.press("Enter")
    refused = review_page.locator("#refused")
    expect(refused).to_contain_text("You are no longer a member here. Your input was not saved.")
    expect(refused).to_contain_text("Helpfulness B")
    expect(refused.get_by_role("link")).to_be_hidden()
    assert review_page.locator("#choices input:checked").count() == len(ASPECTS)
    notice, panel = review_page.locator("#unsent").bounding_box(), review_page.locator("#panel").bounding_box()
    assert notice
    assert panel
    assert notice["y"] + notice["height"] <= panel["y"]


def test_what_comes_after_the_evaluation_was_archived_is_refused_in_words_and_kept_in_view(
    product: Product, tmp_path_factory: pytest.TempPathFactory, name: str, browser: Browser, new_page: NewPage
) -> None:
    study = make_study(product, tmp_path_factory.mktemp("archived"), judged=False)
    page = new_page(storage_state=study.person(browser, name))
    page.goto(study.address)
    expect_next_is_here(page)
    owner = new_page(storage_state=study.person(browser, "owner", "owner"))
    owner.goto(f"/e/{study.slug}/settings/archive")
    owner.get_by_role("button", name="Archive").click()
    owner.wait_for_load_state()
    first = shown(page)
    choose_all(page, "b")
    expect(page.locator("#draft")).to_contain_text("This evaluation is archived")
    page.keyboard.press("Enter")
    expect_other_than(page, first)
    expect(page.locator("#refused")).to_contain_text(
        re.compile("archived.*Nothing was stored.*Helpfulness B", re.DOTALL)
    )
    assert unsent(page) == []
    page.reload()
    expect(page.locator("main")).to_contain_text("This evaluation is archived")


def test_after_the_rubric_was_changed_the_page_asks_the_new_questions_with_what_was_entered(
    product: Product, tmp_path_factory: pytest.TempPathFactory, name: str, browser: Browser, new_page: NewPage
) -> None:
    study = make_study(product, tmp_path_factory.mktemp("reworded"), judged=False)
    page = new_page(storage_state=study.person(browser, name))
    page.goto(study.address)
    expect_next_is_here(page)
    product.manage("shell", "-c", REWORD.format(slug=study.slug))
    first = shown(page)
    choose_all(page, "b")
    expect(page.locator("#draft")).to_contain_text("The rubric changed while this page was open")
    page.keyboard.press("Enter")
    expect_other_than(page, first)
    expect(page.locator("#refused")).to_contain_text("Check its questions again")
    expect(page.locator("[data-aspect=clarity]")).to_contain_text("Which is worse?")  # the next one asks anew at once
    assert study.reviews(name) == []
    page.locator("#refused").get_by_role("link", name="Open the comparison").click()
    expect(page.locator("#comparison")).to_have_attribute("data-comparison", first)
    expect(page.locator("[data-aspect=clarity]")).to_contain_text("Which is worse?")
