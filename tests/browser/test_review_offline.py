"""Nothing is lost: drafts, a connection that goes and comes back, and two tabs."""

import re
import secrets

import pytest
from playwright.sync_api import Browser, Dialog, Page, Request, Route, expect

from tests.browser.conftest import NewPage, sign_in
from tests.browser.review_study import (
    ASPECTS,
    Study,
    choose_all,
    expect_all_sent,
    expect_next_is_here,
    expect_other_than,
    expect_unsent,
    make_study,
    shown,
    unsent,
)
from tests.helpers.running_product import Product

pytestmark = [pytest.mark.browser, pytest.mark.worker]

SEES_ONLY_WHAT_IT_WROTE = """
  const own = new Map();
  const { setItem, removeItem } = Storage.prototype;
  Storage.prototype.setItem = function (name, value) { own.set(name, value); setItem.call(this, name, value); };
  Storage.prototype.removeItem = function (name) { own.delete(name); removeItem.call(this, name); };
  Storage.prototype.getItem = (name) => own.get(name) ?? null;
"""


@pytest.fixture(scope="module")
def study(product: Product, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Without a judge: the first choices are final, and Enter leads on."""
    return make_study(product, tmp_path_factory.mktemp("study"), comparisons=60, judged=False)


@pytest.fixture
def name() -> str:
    """A person of the test's own."""
    return f"person{secrets.token_hex(3)}"


@pytest.fixture
def desk(study: Study, name: str, browser: Browser, new_page: NewPage) -> Page:
    page = new_page(storage_state=study.person(browser, name))
    page.goto(study.address)
    expect_next_is_here(page)
    return page


def checked(page: Page) -> list[str]:
    values: list[str] = page.eval_on_selector_all("#choices input:checked", "all => all.map(one => one.value)")
    return values


# ---- drafts


def test_what_is_entered_stands_there_when_the_page_is_opened_again(desk: Page, study: Study, name: str) -> None:
    first = shown(desk)
    desk.keyboard.press("a")
    desk.keyboard.press("t")
    desk.keyboard.press("n")
    desk.keyboard.type("Half of B is about depth.")
    desk.keyboard.press("Escape")
    expect(desk.locator("#draft")).to_contain_text(re.compile(r"Draft, saved \d\d:\d\d"))
    expect_all_sent(desk)
    desk.reload()
    assert shown(desk) == first
    assert checked(desk) == ["A", "tie"]
    expect(desk.locator("#note-text")).to_have_value("Half of B is about depth.")
    expect(desk.locator("#draft")).to_contain_text("Draft, saved")
    expect(desk.locator("[data-current]")).to_have_attribute("data-aspect", ASPECTS[2])
    assert study.reviews(name) == []


def test_a_page_that_closes_at_once_loses_nothing(desk: Page) -> None:
    first = shown(desk)
    desk.keyboard.press("b")
    desk.reload()
    assert shown(desk) == first
    expect(desk.locator("#choices input:checked")).to_have_count(1)
    expect(desk.locator("#conflict")).to_have_count(0)


def test_two_tabs_with_different_drafts_ask_which_to_use(desk: Page, study: Study, name: str) -> None:
    other = desk.context.new_page()
    other.goto(study.address)
    assert shown(other) == shown(desk)
    desk.keyboard.press("a")
    expect(desk.locator("#draft")).to_contain_text("Draft, saved")
    other.keyboard.press("b")
    conflict = other.locator("#conflict")
    expect(conflict).to_contain_text("There: Helpfulness A")
    expect(conflict).to_contain_text("Here: Helpfulness B")
    conflict.get_by_role("button", name="Use those").click()
    assert checked(other) == ["A"]
    with other.expect_response(re.compile("/draft$")):
        other.keyboard.press("2")
        other.keyboard.press("t")
    expect(conflict).to_have_count(0)
    desk.keyboard.press("3")
    desk.keyboard.press("b")
    desk.locator("#conflict").get_by_role("button", name="Keep these").click()
    expect(desk.locator("#conflict")).to_have_count(0)
    expect_all_sent(desk)
    other.reload()
    expect(other.locator("#choices input:checked")).to_have_count(2)
    assert checked(other) == ["A", "B"]


# ---- without a connection


def test_a_review_made_without_a_connection_arrives_once_when_it_is_back(desk: Page, study: Study, name: str) -> None:
    first = shown(desk)
    desk.context.set_offline(True)
    choose_all(desk, "b")
    desk.keyboard.press("Enter")
    expect_other_than(desk, first)  # the next one was here already
    expect(desk.locator("#unsent")).to_contain_text("No connection: 1 step kept in this browser")
    second = shown(desk)
    desk.keyboard.press("a")
    expect(desk.locator("#unsent")).to_contain_text("1 step and 1 draft")
    expect(desk.locator("#draft")).to_contain_text("kept in this browser")
    assert study.reviews(name) == []
    desk.context.set_offline(False)
    expect(desk.locator("#unsent")).to_contain_text("The connection is back")
    expect(desk.locator("#draft")).to_contain_text("Draft, saved")
    assert shown(desk) == second
    assert checked(desk) == ["A"]
    assert unsent(desk) == []
    (review,) = study.reviews(name)
    assert len({choice["final"] for choice in review["choices"].values()} - {"tie"}) == 1
    expect(desk.locator("#progress")).to_contain_text("1 of 60")


def test_what_a_closed_page_could_not_send_goes_out_with_the_next(desk: Page, study: Study, name: str) -> None:
    desk.context.set_offline(True)
    choose_all(desk)
    desk.keyboard.press("Enter")
    expect(desk.locator("#unsent")).to_contain_text("1 step")
    desk.close(run_before_unload=False)
    desk.context.set_offline(False)
    page = desk.context.new_page()
    page.goto(study.address)
    expect_all_sent(page)
    assert len(study.reviews(name)) == 1


def test_a_page_with_unsent_steps_asks_before_it_closes(desk: Page) -> None:
    desk.context.set_offline(True)
    choose_all(desk)
    desk.keyboard.press("Enter")
    expect(desk.locator("#unsent")).to_contain_text("1 step")
    with desk.expect_event("dialog") as asked:
        desk.close(run_before_unload=True)
    assert asked.value.type == "beforeunload"
    asked.value.dismiss()
    desk.context.set_offline(False)


def test_one_persons_steps_are_never_sent_as_anothers(desk: Page, study: Study, name: str, browser: Browser) -> None:
    desk.context.set_offline(True)
    choose_all(desk)
    desk.keyboard.press("Enter")
    expect(desk.locator("#unsent")).to_contain_text("1 step")
    other = study.person(browser, f"{name}-other")
    desk.context.clear_cookies()
    desk.context.add_cookies(other["cookies"])  # type: ignore[arg-type]
    desk.context.set_offline(False)
    expect(desk.locator("#unsent")).to_contain_text("Somebody else is signed in here now")
    assert study.reviews(name) == []
    page = desk.context.new_page()
    page.goto(study.address)
    expect_next_is_here(page)
    assert unsent(page) == []
    assert study.reviews(name) == []


def test_signing_out_takes_what_was_not_sent_along_and_nobody_sends_it(desk: Page, study: Study, name: str) -> None:
    context = desk.context
    context.route(re.compile("/(save|draft)$"), lambda route: route.abort())
    choose_all(desk)
    desk.keyboard.press("Enter")
    expect(desk.locator("#unsent")).to_contain_text("1 step")
    page = context.new_page()
    page.goto("/account")
    page.once("dialog", Dialog.dismiss)
    page.get_by_role("button", name="Sign out").click()
    assert len(unsent(page)) == 1  # who is asked and says no loses nothing

    page.once("dialog", Dialog.accept)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert page.evaluate("Object.keys(localStorage).filter(name => name.startsWith('judgeweb '))") == []

    other = f"{name}-other"
    sign_in(page, study.link(other))
    context.unroute_all()
    page.goto(study.address)
    expect_next_is_here(page)
    desk.evaluate("dispatchEvent(new Event('focus'))")  # the first one's page is open still
    page.wait_for_timeout(1000)
    assert study.reviews(name) == study.reviews(other) == []
    expect(page.locator("#choices input:checked")).to_have_count(0)


def test_who_was_signed_out_keeps_the_step_until_they_are_back(
    desk: Page, study: Study, name: str, browser: Browser
) -> None:
    first = shown(desk)
    mine = study.person(browser, name)
    cookies = [cookie for cookie in mine["cookies"] if "csrf" not in cookie["name"]]
    desk.context.clear_cookies(name=re.compile("^(?!.*csrf)"))
    choose_all(desk)
    desk.keyboard.press("Enter")
    expect_other_than(desk, first)
    expect(desk.locator("#unsent")).to_contain_text("You are signed out: 1 step kept in this browser")
    assert study.reviews(name) == []
    desk.context.add_cookies(cookies)  # type: ignore[arg-type]
    desk.evaluate("dispatchEvent(new Event('focus'))")
    expect(desk.locator("#unsent")).to_contain_text("1 change sent")
    assert len(study.reviews(name)) == 1


# ---- two tabs, and what the server refuses


def test_a_step_that_was_overtaken_by_another_tab_is_shown_with_what_is_stored(
    desk: Page, study: Study, name: str
) -> None:
    first = shown(desk)
    other = desk.context.new_page()
    other.goto(study.address)
    expect_next_is_here(other)
    choose_all(desk, "a")
    choose_all(other, "b")
    desk.keyboard.press("Enter")
    expect_other_than(desk, first)
    expect_all_sent(desk)
    other.keyboard.press("Enter")
    refused = other.locator("#refused")
    expect(refused).to_contain_text("Helpfulness B")
    expect(refused).to_contain_text("Stored there: Helpfulness A")
    assert len(study.reviews(name)) == 1
    other.reload()
    expect(refused).to_contain_text("Helpfulness B")
    refused.get_by_role("link", name="Open that comparison").click()
    expect(other.locator("#comparison")).to_have_attribute("data-comparison", first)
    other.get_by_role("button", name="Dismiss").click()
    expect(other.locator("#unsent")).to_be_hidden()


def test_a_page_that_sent_another_tabs_save_keeps_what_was_entered_in_it(desk: Page, study: Study, name: str) -> None:
    """It was sending its own draft when the other tab saved, and then sends that save too."""
    held: list[Route] = []
    go_on: list[bool] = []

    def hold(route: Route) -> None:
        if go_on:
            route.continue_()
        else:
            held.append(route)

    first = shown(desk)
    other = desk.context.new_page()
    other.goto(study.address)
    expect_next_is_here(other)
    other.route("**/draft", hold)
    with other.expect_request("**/draft"):
        choose_all(other, "b")
    choose_all(desk, "a")
    desk.keyboard.press("Enter")
    expect_other_than(desk, first)
    with other.expect_response("**/save"):
        go_on.append(True)
        held.pop().continue_()
    expect_all_sent(other)
    other.wait_for_timeout(500)  # in which it would go elsewhere
    assert shown(other) == first
    assert checked(other) == ["B"] * len(ASPECTS)
    other.keyboard.press("Enter")
    expect(other.locator("#refused")).to_contain_text("Stored there: Helpfulness A")
    expect(other.locator("#refused > li")).to_have_count(1)
    assert len(study.reviews(name)) == 1


def test_a_draft_that_is_refused_while_its_save_is_on_its_way_is_not_told_twice(
    desk: Page, study: Study, name: str, browser: Browser, new_page: NewPage
) -> None:
    first = shown(desk)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    desk.route("**/draft", hold)
    with desk.expect_request("**/draft"):
        choose_all(desk, "b")
    elsewhere = new_page(storage_state=study.person(browser, name))
    elsewhere.goto(study.address)
    assert shown(elsewhere) == first
    choose_all(elsewhere, "a")
    elsewhere.keyboard.press("Enter")
    expect_other_than(elsewhere, first)
    expect_all_sent(elsewhere)
    desk.keyboard.press("Enter")
    expect_other_than(desk, first)
    held.pop().continue_()
    expect_all_sent(desk)
    expect(desk.locator("#refused > li")).to_have_count(1)
    assert len(study.reviews(name)) == 1


def test_a_draft_that_another_tab_sent_in_vain_is_not_told_beside_its_save(desk: Page, study: Study, name: str) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    other = desk.context.new_page()
    other.goto(study.address)
    expect_next_is_here(other)
    desk.route("**/save", hold)
    choose_all(desk, "a")
    with desk.expect_request("**/save"):
        desk.keyboard.press("Enter")
    choose_all(other, "b")
    expect_unsent(other, ["step", "draft"])
    held.pop().continue_()  # it sends both, in their order
    refused = other.locator("#refused > li")
    expect(refused).to_have_count(1)
    expect(refused).to_contain_text("the draft was not kept")
    other.keyboard.press("Enter")
    expect(refused).to_contain_text("Stored there: Helpfulness A")
    expect(refused).to_have_count(1)
    expect_all_sent(other)
    assert len(study.reviews(name)) == 1


def test_a_tab_that_does_not_see_yet_what_another_wrote_takes_nothing_of_it_out(
    desk: Page, study: Study, name: str
) -> None:
    """Pages of one browser see each other's storage late: one must never write over what it has not seen."""
    held: list[Route] = []
    go_on: list[bool] = []

    def hold(route: Route) -> None:
        if go_on:
            route.continue_()
        else:
            held.append(route)

    desk.context.route("**/save", hold)
    other = desk.context.new_page()
    other.add_init_script(SEES_ONLY_WHAT_IT_WROTE)
    other.goto(study.address)
    expect_next_is_here(other)
    choose_all(desk, "a")
    desk.keyboard.press("Enter")
    choose_all(other, "b")
    other.keyboard.press("Enter")
    assert [item["words"][:13] for item in unsent(desk) if item["kind"] == "step"] == ["Helpfulness A", "Helpfulness B"]
    go_on.append(True)
    held.pop().continue_()
    expect(desk.locator("#refused")).to_contain_text("Stored there: Helpfulness A")  # it sends both, in their order
    expect_all_sent(desk)
    assert len(study.reviews(name)) == 1


# ---- the next one


def test_enter_opens_the_prefetched_comparison_and_asks_for_no_page(desk: Page, study: Study, name: str) -> None:
    asked: list[str] = []
    for _ in range(3):
        first = shown(desk)
        choose_all(desk)

        def note(request: Request) -> None:
            if request.resource_type == "document" or not re.search(r"/(save|draft|ahead\?.*|static/.*)$", request.url):
                asked.append(f"{request.method} {request.url}")

        desk.on("request", note)
        desk.keyboard.press("Enter")
        expect_other_than(desk, first)
        expect_next_is_here(desk)
        desk.remove_listener("request", note)
        assert desk.url.endswith(f"/review/{shown(desk)}")
    assert asked == []
    expect_all_sent(desk)
    assert len(study.reviews(name)) == 3


def test_going_back_shows_what_was_saved_and_forward_where_the_person_was(desk: Page, study: Study, name: str) -> None:
    """Also where the save is still on its way when the person goes back."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    first = shown(desk)
    choose_all(desk)
    desk.route("**/save", hold)
    desk.keyboard.press("Enter")
    expect_other_than(desk, first)
    second = shown(desk)
    desk.go_back()
    desk.wait_for_timeout(500)
    assert shown(desk) == second
    held.pop().continue_()
    expect(desk.locator("#comparison")).to_have_attribute("data-comparison", first)
    expect(desk.locator("#panel")).to_have_attribute("data-stage", "done")
    desk.go_forward()
    expect(desk.locator("#comparison")).to_have_attribute("data-comparison", second)
    expect(desk.locator("#panel")).to_have_attribute("data-stage", "choose")
    assert len(study.reviews(name)) == 1


def test_undo_of_the_last_step_is_right_after_a_prefetched_one(desk: Page, study: Study, name: str) -> None:
    first = shown(desk)
    choose_all(desk, "b")
    desk.keyboard.press("Enter")
    expect_other_than(desk, first)
    desk.keyboard.press("u")
    expect(desk.locator("#comparison")).to_have_attribute("data-comparison", first)
    assert checked(desk) == ["B"] * len(ASPECTS)
    assert study.reviews(name) == []


# ---- without JavaScript


def test_everything_works_without_javascript(study: Study, name: str, browser: Browser, new_page: NewPage) -> None:
    page = new_page(storage_state=study.person(browser, name), java_script_enabled=False)
    page.goto(study.address)
    first = shown(page)
    for group in page.locator("#choices .aspect").all():
        group.locator("input[value=A]").check()
    page.get_by_role("button", name="Save").click()
    second = shown(page)
    assert second != first
    page.locator("#skip > summary").click()
    page.get_by_label("Why you skip it").fill("too long")
    page.get_by_role("button", name="Skip", exact=True).click()
    assert shown(page) not in (first, second)
    (review,) = study.reviews(name)
    assert len(review["choices"]) == len(ASPECTS)
