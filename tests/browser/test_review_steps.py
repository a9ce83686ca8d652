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
from evaluations.models import Evaluation
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
def desk(study: Study, name: str, browser: Browser, new_page: NewPage) -> Page:
    page = new_page(storage_state=study.person(browser, name))
    page.goto(study.address)
    expect_next_is_here(page)
    return page


# ---- undo


@pytest.mark.parametrize("button", ["#undo button", "#earlier"])
def test_what_goes_back_waits_for_the_step_that_is_on_its_way(button: str, desk: Page) -> None:
    """The next comparison stands there before the last one is stored: its undo is still that of the one before."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    for stored in (True, False):
        expect_next_is_here(desk)
        last = shown(desk)
        choose_all(desk)
        desk.keyboard.press("Enter")
        expect_revealed(desk)
        desk.route("**/confirm", hold)
        desk.keyboard.press("Enter")
        expect_other_than(desk, last)
        if stored:
            let_go(desk, held)
            expect(desk.locator("#undo")).to_have_attribute("action", re.compile(f"/{last}/"))
    desk.locator(button).click()
    let_go(desk, held)
    expect(desk.locator("#comparison")).to_have_attribute("data-comparison", last)


def let_go(page: Page, held: "list[Route]") -> None:
    while not held:
        page.wait_for_timeout(50)
    held.pop().continue_()
    page.unroute("**/confirm")


# ---- the reveal


@pytest.mark.parametrize("how", ["click", "key"])
def test_a_second_click_or_enter_does_not_confirm_what_was_not_seen(
    how: str, desk: Page, study: Study, name: str
) -> None:
    first = shown(desk)
    choose_all(desk)
    box = desk.locator("[data-primary]").bounding_box()
    assert box
    for _ in range(2):
        if how == "click":
            desk.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        else:
            desk.keyboard.press("Enter")
        expect(desk.locator("#panel")).to_have_attribute("data-stage", "confirm")
    expect_revealed(desk)
    assert shown(desk) == first
    expect(desk.locator("#panel")).to_have_attribute("data-stage", "confirm")
    desk.keyboard.press("Enter")
    expect_other_than(desk, first)


def test_one_key_confirms_what_agrees_and_goes_to_what_differs(desk: Page) -> None:
    first = shown(desk)
    for key in ("t", "t", "a", "t", "b", "t"):
        desk.keyboard.press(key)
    desk.keyboard.press("Enter")
    expect_revealed(desk)
    desk.keyboard.press("1")
    desk.keyboard.press("c")
    expect(desk.locator("[data-current]")).to_have_attribute("data-aspect", ASPECTS[2])
    expect(desk.locator("[data-aspect=clarity]")).to_be_focused()
    expect(desk.locator("[data-confirmed]")).to_have_count(4)
    assert shown(desk) == first
    expect(desk.locator("#panel")).to_have_attribute("data-stage", "confirm")
    desk.keyboard.press("Enter")
    expect_other_than(desk, first)


def test_where_nothing_differs_the_same_key_saves_and_goes_on(desk: Page, study: Study, name: str) -> None:
    first = shown(desk)
    choose_all(desk, "t")
    desk.keyboard.press("Enter")
    expect(desk.locator("#panel")).to_have_attribute("data-stage", "confirm")
    expect(desk.locator("[data-confirm]")).to_have_count(0)
    desk.keyboard.press("c")
    expect_other_than(desk, first)
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


def test_a_skip_keeps_what_was_entered_at_the_last_moment(desk: Page) -> None:
    first = shown(desk)
    desk.keyboard.press("b")
    desk.keyboard.press("n")
    desk.keyboard.type("Not my field.")
    desk.keyboard.press("Escape")
    desk.keyboard.press("s")
    desk.keyboard.press("Enter")
    expect_other_than(desk, first)
    expect_all_sent(desk)
    desk.keyboard.press("u")
    expect(desk.locator("#comparison")).to_have_attribute("data-comparison", first)
    expect(desk.locator("#choices input:checked")).to_have_count(1)
    expect(desk.locator("#note-text")).to_have_value("Not my field.")


# ---- who may not any more


def test_who_was_taken_out_is_told_so_beside_the_panel(
    study: Study, desk: Page, name: str, browser: Browser, new_page: NewPage
) -> None:
    owner = new_page(storage_state=study.person(browser, "owner", "owner"))
    owner.goto(f"/e/{study.slug}/people")
    row = owner.locator("tr", has_text=f"{name}-{study.slug}")
    row.locator("summary", has_text="Remove").click()
    row.get_by_role("button", name="Remove").click()
    owner.wait_for_load_state()
    choose_all(desk, "b")
    expect(desk.locator("#draft")).to_contain_text("You no longer take part here")
    desk.keyboard.press("Enter")
    refused = desk.locator("#refused")
    expect(refused).to_contain_text("You no longer take part here: what you entered was not stored.")
    expect(refused).to_contain_text("Helpfulness B")
    expect(refused.get_by_role("link")).to_be_hidden()
    assert desk.locator("#choices input:checked").count() == len(ASPECTS)
    notice, panel = desk.locator("#unsent").bounding_box(), desk.locator("#panel").bounding_box()
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
    owner.goto(f"/e/{study.slug}/settings")
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
    expect(page.locator("#draft")).to_contain_text("The rubric was changed while this page was open")
    page.keyboard.press("Enter")
    expect_other_than(page, first)
    expect(page.locator("#refused")).to_contain_text("look at its questions again")
    expect(page.locator("[data-aspect=clarity]")).to_contain_text("Which is worse?")  # the next one asks anew at once
    assert study.reviews(name) == []
    page.locator("#refused").get_by_role("link", name="Open that comparison").click()
    expect(page.locator("#comparison")).to_have_attribute("data-comparison", first)
    expect(page.locator("[data-aspect=clarity]")).to_contain_text("Which is worse?")
