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
def review_page(study: Study, name: str, browser: Browser, new_page: NewPage) -> Page:
    page = new_page(storage_state=study.person(browser, name))
    page.goto(study.address)
    expect_next_is_here(page)
    return page


def checked(page: Page) -> list[str]:
    values: list[str] = page.eval_on_selector_all("#choices input:checked", "all => all.map(one => one.value)")
    return values


# ---- drafts


def test_what_is_entered_stands_there_when_the_page_is_opened_again(review_page: Page, study: Study, name: str) -> None:
    first = shown(review_page)
    review_page.keyboard.press("a")
    review_page.keyboard.press("t")
    review_page.keyboard.press("n")
    review_page.keyboard.type("Half of B is about depth.")
    review_page.keyboard.press("Escape")
    expect(review_page.locator("#draft")).to_contain_text(re.compile(r"Draft saved \d\d:\d\d"))
    expect_all_sent(review_page)
    review_page.reload()
    assert shown(review_page) == first
    assert checked(review_page) == ["A", "tie"]
    expect(review_page.locator("#note-text")).to_have_value("Half of B is about depth.")
    expect(review_page.locator("#draft")).to_contain_text("Draft saved")
    expect(review_page.locator("[data-current]")).to_have_attribute("data-aspect", ASPECTS[2])
    assert study.reviews(name) == []


def test_a_page_that_closes_at_once_loses_nothing(review_page: Page) -> None:
    first = shown(review_page)
    review_page.keyboard.press("b")
    review_page.reload()
    assert shown(review_page) == first
    expect(review_page.locator("#choices input:checked")).to_have_count(1)
    expect(review_page.locator("#conflict")).to_have_count(0)


def test_two_tabs_with_different_drafts_ask_which_to_use(review_page: Page, study: Study, name: str) -> None:
    other = review_page.context.new_page()
    other.goto(study.address)
    assert shown(other) == shown(review_page)
    review_page.keyboard.press("a")
    expect(review_page.locator("#draft")).to_contain_text("Draft saved")
    other.keyboard.press("b")
    conflict = other.locator("#conflict")
    expect(conflict).to_contain_text("Other tab: Helpfulness A")
    expect(conflict).to_contain_text("This tab: Helpfulness B")
    conflict.get_by_role("button", name="Use the other tab’s").click()
    assert checked(other) == ["A"]
    with other.expect_response(re.compile("/draft$")):
        other.keyboard.press("2")
        other.keyboard.press("t")
    expect(conflict).to_have_count(0)
    review_page.keyboard.press("3")
    review_page.keyboard.press("b")
    review_page.locator("#conflict").get_by_role("button", name="Keep mine").click()
    expect(review_page.locator("#conflict")).to_have_count(0)
    expect_all_sent(review_page)
    other.reload()
    expect(other.locator("#choices input:checked")).to_have_count(2)
    assert checked(other) == ["A", "B"]


# ---- without a connection


def test_a_review_made_without_a_connection_arrives_once_when_it_is_back(
    review_page: Page, study: Study, name: str
) -> None:
    first = shown(review_page)
    review_page.context.set_offline(True)
    choose_all(review_page, "b")
    review_page.keyboard.press("Enter")
    expect_other_than(review_page, first)  # the next one was here already
    expect(review_page.locator("#unsent")).to_contain_text("No connection: 1 step kept in this browser")
    second = shown(review_page)
    review_page.keyboard.press("a")
    expect(review_page.locator("#unsent")).to_contain_text("1 step and 1 draft")
    expect(review_page.locator("#draft")).to_contain_text("kept in this browser")
    assert study.reviews(name) == []
    review_page.context.set_offline(False)
    expect(review_page.locator("#unsent")).to_contain_text("Back online")
    expect(review_page.locator("#draft")).to_contain_text("Draft saved")
    assert shown(review_page) == second
    assert checked(review_page) == ["A"]
    assert unsent(review_page) == []
    (review,) = study.reviews(name)
    assert len({choice["final"] for choice in review["choices"].values()} - {"tie"}) == 1
    expect(review_page.locator("#progress")).to_contain_text("1 of 60")


def test_what_a_closed_page_could_not_send_goes_out_with_the_next(review_page: Page, study: Study, name: str) -> None:
    review_page.context.set_offline(True)
    choose_all(review_page)
    review_page.keyboard.press("Enter")
    expect(review_page.locator("#unsent")).to_contain_text("1 step")
    review_page.close(run_before_unload=False)
    review_page.context.set_offline(False)
    page = review_page.context.new_page()
    page.goto(study.address)
    expect_all_sent(page)
    assert len(study.reviews(name)) == 1


def test_a_page_with_unsent_steps_asks_before_it_closes(review_page: Page) -> None:
    review_page.context.set_offline(True)
    choose_all(review_page)
    review_page.keyboard.press("Enter")
    expect(review_page.locator("#unsent")).to_contain_text("1 step")
    with review_page.expect_event("dialog") as asked:
        review_page.close(run_before_unload=True)
    assert asked.value.type == "beforeunload"
    asked.value.dismiss()
    review_page.context.set_offline(False)


def test_one_persons_steps_are_never_sent_as_anothers(
    review_page: Page, study: Study, name: str, browser: Browser
) -> None:
    review_page.context.set_offline(True)
    choose_all(review_page)
    review_page.keyboard.press("Enter")
    expect(review_page.locator("#unsent")).to_contain_text("1 step")
    other = study.person(browser, f"{name}-other")
    review_page.context.clear_cookies()
    review_page.context.add_cookies(other["cookies"])  # type: ignore[arg-type]
    review_page.context.set_offline(False)
    expect(review_page.locator("#unsent")).to_contain_text("Another user is signed in here")
    assert study.reviews(name) == []
    page = review_page.context.new_page()
    page.goto(study.address)
    expect_next_is_here(page)
    assert unsent(page) == []
    assert study.reviews(name) == []


def test_signing_out_takes_what_was_not_sent_along_and_nobody_sends_it(
    review_page: Page, study: Study, name: str
) -> None:
    context = review_page.context
    context.route(re.compile("/(save|draft)$"), lambda route: route.abort())
    choose_all(review_page)
    review_page.keyboard.press("Enter")
    expect(review_page.locator("#unsent")).to_contain_text("1 step")
    page = context.new_page()
    page.goto("/account")
    page.once("dialog", Dialog.dismiss)
    page.get_by_role("button", name="Sign out", exact=True).click()
    assert len(unsent(page)) == 1  # who is asked and says no loses nothing

    page.once("dialog", Dialog.accept)
    page.get_by_role("button", name="Sign out", exact=True).click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert page.evaluate("Object.keys(localStorage).filter(name => name.startsWith('judgeweb '))") == []

    other = f"{name}-other"
    sign_in(page, study.link(other))
    context.unroute_all()
    page.goto(study.address)
    expect_next_is_here(page)
    review_page.evaluate("dispatchEvent(new Event('focus'))")  # the first one's page is open still
    page.wait_for_timeout(1000)
    assert study.reviews(name) == study.reviews(other) == []
    expect(page.locator("#choices input:checked")).to_have_count(0)


def test_who_was_signed_out_keeps_the_step_until_they_are_back(
    review_page: Page, study: Study, name: str, browser: Browser
) -> None:
    first = shown(review_page)
    mine = study.person(browser, name)
    cookies = [cookie for cookie in mine["cookies"] if "csrf" not in cookie["name"]]
    review_page.context.clear_cookies(name=re.compile("^(?!.*csrf)"))
    choose_all(review_page)
    review_page.keyboard.press("Enter")
    expect_other_than(review_page, first)
    expect(review_page.locator("#unsent")).to_contain_text("Signed out: 1 step kept in this browser")
    assert study.reviews(name) == []
    review_page.context.add_cookies(cookies)  # type: ignore[arg-type]
    review_page.evaluate("dispatchEvent(new Event('focus'))")
    expect(review_page.locator("#unsent")).to_contain_text("1 change sent")
    assert len(study.reviews(name)) == 1


# ---- two tabs, and what the server refuses


def test_a_step_that_was_overtaken_by_another_tab_is_shown_with_what_is_stored(
    review_page: Page, study: Study, name: str
) -> None:
    first = shown(review_page)
    other = review_page.context.new_page()
    other.goto(study.address)
    expect_next_is_here(other)
    choose_all(review_page, "a")
    choose_all(other, "b")
    review_page.keyboard.press("Enter")
    expect_other_than(review_page, first)
    expect_all_sent(review_page)
    other.keyboard.press("Enter")
    refused = other.locator("#refused")
    expect(refused).to_contain_text("Helpfulness B")
    expect(refused).to_contain_text("Saved: Helpfulness A")
    assert len(study.reviews(name)) == 1
    other.reload()
    expect(refused).to_contain_text("Helpfulness B")
    refused.get_by_role("link", name="Open the comparison").click()
    expect(other.locator("#comparison")).to_have_attribute("data-comparison", first)
    other.get_by_role("button", name="Dismiss").click()
    expect(other.locator("#unsent")).to_be_hidden()


def test_a_page_that_sent_another_tabs_save_keeps_what_was_entered_in_it(
    review_page: Page, study: Study, name: str
) -> None:
    """It was sending its own draft when the other tab saved, and then sends that save too."""
    held: list[Route] = []
    go_on: list[bool] = []

    def hold(route: Route) -> None:
        if go_on:
            route.continue_()
        else:
            held.append(route)

    first = shown(review_page)
    other = review_page.context.new_page()
    other.goto(study.address)
    expect_next_is_here(other)
    other.route("**/draft", hold)
    with other.expect_request("**/draft"):
        choose_all(other, "b")
    choose_all(review_page, "a")
    review_page.keyboard.press("Enter")
    expect_other_than(review_page, first)
    with other.expect_response("**/save"):
        go_on.append(True)
        held.pop().continue_()
    expect_all_sent(other)
    other.wait_for_timeout(500)  # in which it would go elsewhere
    assert shown(other) == first
    assert checked(other) == ["B"] * len(ASPECTS)
    other.keyboard.press("Enter")
    expect(other.locator("#refused")).to_contain_text("Saved: Helpfulness A")
    expect(other.locator("#refused > li")).to_have_count(1)
    assert len(study.reviews(name)) == 1


def test_a_draft_that_is_refused_while_its_save_is_on_its_way_is_not_told_twice(
    review_page: Page, study: Study, name: str, browser: Browser, new_page: NewPage
) -> None:
    first = shown(review_page)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    review_page.route("**/draft", hold)
    with review_page.expect_request("**/draft"):
        choose_all(review_page, "b")
    elsewhere = new_page(storage_state=study.person(browser, name))
    elsewhere.goto(study.address)
    assert shown(elsewhere) == first
    choose_all(elsewhere, "a")
    elsewhere.keyboard.press("Enter")
    expect_other_than(elsewhere, first)
    expect_all_sent(elsewhere)
    review_page.keyboard.press("Enter")
    expect_other_than(review_page, first)
    held.pop().continue_()
    expect_all_sent(review_page)
    expect(review_page.locator("#refused > li")).to_have_count(1)
    assert len(study.reviews(name)) == 1


def test_a_draft_that_another_tab_sent_in_vain_is_not_told_beside_its_save(
    review_page: Page, study: Study, name: str
) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    other = review_page.context.new_page()
    other.goto(study.address)
    expect_next_is_here(other)
    review_page.route("**/save", hold)
    choose_all(review_page, "a")
    with review_page.expect_request("**/save"):
        review_page.keyboard.press("Enter")
    choose_all(other, "b")
    expect_unsent(other, ["step", "draft"])
    held.pop().continue_()  # it sends both, in their order
    refused = other.locator("#refused > li")
    expect(refused).to_have_count(1)
    expect(refused).to_contain_text("The draft was not saved")
    other.keyboard.press("Enter")
    expect(refused).to_contain_text("Saved: Helpfulness A")
    expect(refused).to_have_count(1)
    expect_all_sent(other)
    assert len(study.reviews(name)) == 1


def test_a_tab_that_does_not_see_yet_what_another_wrote_takes_nothing_of_it_out(
    review_page: Page, study: Study, name: str
) -> None:
    """Pages of one browser see each other's storage late: one must never write over what it has not seen."""
    held: list[Route] = []
    go_on: list[bool] = []

    def hold(route: Route) -> None:
        if go_on:
            route.continue_()
        else:
            held.append(route)

    review_page.context.route("**/save", hold)
    other = review_page.context.new_page()
    other.add_init_script(SEES_ONLY_WHAT_IT_WROTE)
    other.goto(study.address)
    expect_next_is_here(other)
    choose_all(review_page, "a")
    review_page.keyboard.press("Enter")
    choose_all(other, "b")
    other.keyboard.press("Enter")
    assert [item["words"][:13] for item in unsent(review_page) if item["kind"] == "step"] == [
        "Helpfulness A",
        "Helpfulness B",
    ]
    go_on.append(True)
    held.pop().continue_()
    expect(review_page.locator("#refused")).to_contain_text("Saved: Helpfulness A")  # it sends both, in their order
    expect_all_sent(review_page)
    assert len(study.reviews(name)) == 1


# ---- the next one


def test_enter_opens_the_prefetched_comparison_and_asks_for_no_page(review_page: Page, study: Study, name: str) -> None:
    asked: list[str] = []
    for _ in range(3):
        first = shown(review_page)
        choose_all(review_page)

        def note(request: Request) -> None:
            if request.resource_type == "document" or not re.search(r"/(save|draft|ahead\?.*|static/.*)$", request.url):
                asked.append(f"{request.method} {request.url}")

        review_page.on("request", note)
        review_page.keyboard.press("Enter")
        expect_other_than(review_page, first)
        expect_next_is_here(review_page)
        review_page.remove_listener("request", note)
        assert review_page.url.endswith(f"/review/{shown(review_page)}")
    assert asked == []
    expect_all_sent(review_page)
    assert len(study.reviews(name)) == 3


def test_going_back_shows_what_was_saved_and_forward_where_the_person_was(
    review_page: Page, study: Study, name: str
) -> None:
    """Also where the save is still on its way when the person goes back."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    first = shown(review_page)
    choose_all(review_page)
    review_page.route("**/save", hold)
    review_page.keyboard.press("Enter")
    expect_other_than(review_page, first)
    second = shown(review_page)
    review_page.go_back()
    review_page.wait_for_timeout(500)
    assert shown(review_page) == second
    held.pop().continue_()
    expect(review_page.locator("#comparison")).to_have_attribute("data-comparison", first)
    expect(review_page.locator("#panel")).to_have_attribute("data-stage", "done")
    review_page.go_forward()
    expect(review_page.locator("#comparison")).to_have_attribute("data-comparison", second)
    expect(review_page.locator("#panel")).to_have_attribute("data-stage", "choose")
    assert len(study.reviews(name)) == 1


def test_undo_of_the_last_step_is_right_after_a_prefetched_one(review_page: Page, study: Study, name: str) -> None:
    first = shown(review_page)
    choose_all(review_page, "b")
    review_page.keyboard.press("Enter")
    expect_other_than(review_page, first)
    review_page.keyboard.press("u")
    expect(review_page.locator("#comparison")).to_have_attribute("data-comparison", first)
    assert checked(review_page) == ["B"] * len(ASPECTS)
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
    page.get_by_label("Reason for skipping").fill("too long")
    page.get_by_role("button", name="Skip", exact=True).click()
    assert shown(page) not in (first, second)
    (review,) = study.reviews(name)
    assert len(review["choices"]) == len(ASPECTS)
