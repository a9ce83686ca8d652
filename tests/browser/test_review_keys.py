"""A shift by keyboard alone, and who does not want single keys."""

import json
import secrets
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import NewPage
from tests.browser.review_study import (
    ASPECTS,
    Study,
    choose_all,
    expect_all_sent,
    expect_other_than,
    expect_revealed,
    make_study,
    shown,
)
from tests.helpers.running_product import Product

pytestmark = [pytest.mark.browser, pytest.mark.worker]


@pytest.fixture(scope="module")
def study(product: Product, tmp_path_factory: pytest.TempPathFactory) -> Study:
    return make_study(product, tmp_path_factory.mktemp("study"), comparisons=12)


@pytest.fixture
def review_page(study: Study, browser: Browser, new_page: NewPage) -> Page:
    """The review page of a person of its own."""
    page = new_page(storage_state=study.person(browser, f"person{secrets.token_hex(3)}"))
    page.goto(study.address)
    return page


def checked(page: Page) -> list[str]:
    values: list[str] = page.eval_on_selector_all("#choices input:checked", "all => all.map(one => one.value)")
    return values


def test_choices_aspects_and_the_way_on_need_no_mouse(review_page: Page) -> None:
    first = shown(review_page)
    for key in ("a", "t", "b", "ArrowLeft", "ArrowRight", "a"):
        review_page.keyboard.press(key)
    assert checked(review_page) == ["A", "tie", "B", "A", "B", "A"]
    review_page.keyboard.press("2")
    expect(review_page.locator("[data-current]")).to_have_attribute("data-aspect", ASPECTS[1])
    review_page.keyboard.press("ArrowDown")
    review_page.keyboard.press("b")
    assert checked(review_page) == ["A", "tie", "B", "A", "B", "A"]
    review_page.keyboard.press("Enter")
    expect_revealed(review_page)
    review_page.keyboard.press("Enter")
    expect_other_than(review_page, first)
    review_page.keyboard.press("p")
    expect(review_page.locator("#comparison")).to_have_attribute("data-comparison", first)
    expect(review_page.locator("#panel")).to_have_attribute("data-stage", "done")


def test_shift_sets_the_remaining_aspects_only(review_page: Page) -> None:
    for key in ("b", "Shift+A"):
        review_page.keyboard.press(key)
    assert checked(review_page) == ["B", "A", "A", "A", "A", "A"]
    review_page.keyboard.press("Shift+T")
    assert checked(review_page) == ["B", "A", "A", "A", "A", "A"]


def test_focus_mode_hides_the_header_until_escape_and_is_remembered(review_page: Page) -> None:
    header = review_page.locator("header.site")
    review_page.keyboard.press("f")
    expect(header).to_be_hidden()
    review_page.reload()
    expect(header).to_be_hidden()
    expect(review_page.get_by_role("button", name="Focus")).to_have_attribute("aria-pressed", "true")
    review_page.keyboard.press("Escape")
    expect(header).to_be_visible()


def test_one_key_does_where_overall_is_the_only_aspect(
    product: Product, browser: Browser, new_page: NewPage, tmp_path: Path
) -> None:
    study = make_study(product, tmp_path, comparisons=4, judged=False, rubric="overall")
    page = new_page(storage_state=study.person(browser))
    page.goto(study.address)
    first = shown(page)
    page.keyboard.press("b")
    assert (shown(page), checked(page)) == (first, ["B"])
    page.keyboard.press("Enter")
    expect_other_than(page, first)
    second = shown(page)
    page.keyboard.press("i")
    expect(page.get_by_role("button", name="Save at once")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("a")
    expect_other_than(page, second)
    expect_all_sent(page)
    assert len(study.reviews()) == 2


def test_overall_added_to_a_rubric_is_the_first_key(
    product: Product, browser: Browser, new_page: NewPage, tmp_path: Path
) -> None:
    """The judge of the earlier version has no overall choice; the others are compared."""
    study = make_study(product, tmp_path, comparisons=4)
    page = new_page(storage_state=study.person(browser, role="manager"))
    page.goto(f"/e/{study.slug}/settings")
    page.get_by_role("link", name="Ask for an overall choice first").click()
    page.get_by_role("button", name="Save version").click()
    page.goto(study.address)
    first = shown(page)
    expect(page.locator("[data-current]")).to_have_attribute("data-aspect", "overall")
    for key in ("b", "Shift+T"):
        page.keyboard.press(key)
    assert checked(page) == ["B", *["tie"] * len(ASPECTS)]
    page.keyboard.press("Enter")
    expect_revealed(page)
    page.keyboard.press("Enter")
    expect_other_than(page, first)
    expect_all_sent(page)
    (review,) = study.reviews()
    assert set(review["choices"]) == {"overall", *ASPECTS}


def test_undo_after_the_reveal_takes_back_the_final_choices_only(review_page: Page) -> None:
    first = shown(review_page)
    choose_all(review_page)
    review_page.keyboard.press("Enter")
    expect_revealed(review_page)
    review_page.keyboard.press("Enter")
    expect_other_than(review_page, first)
    review_page.keyboard.press("u")
    expect(review_page.locator("#panel")).to_have_attribute("data-stage", "confirm")
    expect(review_page.locator("#comparison")).to_have_attribute("data-comparison", first)
    expect(review_page.locator("#agreement")).to_be_visible()


def test_skipping_asks_for_a_reason_and_undo_brings_it_back(review_page: Page) -> None:
    first = shown(review_page)
    review_page.keyboard.press("s")
    review_page.keyboard.type("too long for a and b")
    review_page.keyboard.press("Enter")
    expect_other_than(review_page, first)
    expect(review_page.locator("#undo")).to_have_attribute(
        "action",
        f"{review_page.url.rpartition('/')[0]}/{first}/undo".replace(review_page.evaluate("location.origin"), ""),
    )
    review_page.keyboard.press("u")
    expect(review_page.locator("#comparison")).to_have_attribute("data-comparison", first)


def test_keys_do_nothing_while_somebody_writes_composes_holds_a_modifier_or_reads_the_sheet(review_page: Page) -> None:
    review_page.keyboard.press("n")
    review_page.keyboard.type("a tie b x 1 ?")
    assert checked(review_page) == []
    expect(review_page.locator("#note-text")).to_have_value("a tie b x 1 ?")
    review_page.keyboard.press("Escape")
    for key in ("Control+b", "Alt+a", "Shift+N", "Meta+t"):
        review_page.keyboard.press(key)
    review_page.evaluate(
        "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'a', isComposing: true, bubbles: true}))"
    )
    assert checked(review_page) == []
    review_page.keyboard.press("?")
    expect(review_page.locator("#keys")).to_be_visible()
    review_page.keyboard.press("a")
    assert checked(review_page) == []
    review_page.keyboard.press("Escape")
    expect(review_page.locator("#keys")).to_be_hidden()
    review_page.keyboard.press("a")
    assert checked(review_page) == ["A"]


def test_without_single_keys_characters_act_with_alt_only(review_page: Page, study: Study) -> None:
    review_page.goto("/account")
    review_page.get_by_label("Single-key shortcuts").uncheck()
    review_page.get_by_role("button", name="Save").click()
    review_page.goto(study.address)
    for key in ("a", "1", "c", "?"):
        review_page.keyboard.press(key)
    assert checked(review_page) == []
    expect(review_page.locator("#keys")).to_be_hidden()
    review_page.keyboard.press("Alt+t")
    assert checked(review_page) == ["tie"]
    review_page.keyboard.press("ArrowRight")
    assert checked(review_page) == ["tie", "B"]
    review_page.keyboard.press("Alt+?")
    expect(review_page.locator("#keys")).to_be_visible()
    expect(review_page.locator("#keys")).to_contain_text("press letters, digits, and ? together with Alt")


def test_one_response_is_scored_with_one_key(
    product: Product, tmp_path: Path, browser: Browser, new_page: NewPage
) -> None:
    """The summary rating asks for one score from 1 to 5."""
    file = tmp_path / "responses.jsonl"
    rows = [{"query_id": f"q{n}", "query": "Sum up.", "candidate": "alpha", "response": f"Sum {n}."} for n in range(3)]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    study = Study(product, f"study-{secrets.token_hex(4)}", tmp_path)
    product.manage("create_evaluation", study.slug, "--name", "Summaries", "--rubric", "summary-rating")
    product.manage("import_comparisons", study.slug, str(file), "--format", "responses")
    page = new_page(storage_state=study.person(browser))
    page.goto(study.address)
    first = shown(page)
    expect(page.locator("#comparison .side")).to_have_count(1)
    page.keyboard.press("b")  # there is no other side
    page.keyboard.press("4")
    assert checked(page) == ["4"]
    expect(page.locator("#status")).to_have_text("Overall: 4")
    page.keyboard.press("d")  # nor a word diff
    page.keyboard.press("Enter")
    expect_other_than(page, first)
    expect(page.locator("#progress")).to_contain_text("1 of 3")
    page.keyboard.press("u")
    expect(page.locator("#comparison")).to_have_attribute("data-comparison", first)
    assert checked(page) == ["4"]
