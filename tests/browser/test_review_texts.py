"""The reading side of the review page in a real browser: what is seen, how it scrolls, what is marked in it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, StorageState, expect

from tests.browser.axe import faults_found_by_axe
from tests.browser.conftest import NewPage
from tests.browser.review_study import wait_until
from tests.helpers.running_product import Product

pytestmark = [pytest.mark.browser, pytest.mark.worker]

PHONE = {"width": 390, "height": 844}
LONG = "\n\n".join(f"Paragraph {number} of a lighthouse keeper's long evening by the sea." for number in range(120))
LONGER = "\n\n".join(f"Line {number} of another keeper, who had much more to say of the sea." for number in range(240))
CODE = "Look 👍 at **this**:\n\n```python\nx = 1\n```\n\nThe *third* way is best."
WORSE = CODE.replace("best", "worst")
ROWS = [
    {"query": "short", "response_a": "The sky is blue today.", "response_b": "The sky is grey today."},
    {"query": "long", "response_a": LONG, "response_b": LONGER},
    {"query": "code", "response_a": CODE, "response_b": WORSE, "context": "A page of a book."},
    *(
        {"query": query, "response_a": CODE, "response_b": WORSE}
        for query in ("keys", "numbers", "wrapped", "axe-light", "axe-dark")
    ),
    {"query": "hebrew", "response_a": "- [x] בוצע\n- [ ] עוד", "response_b": "- [x] בוצע\n- [ ] אחר"},
    {"query": "huge", "response_a": "word and " * 11_000, "response_b": "other words\n\n" * 8_000},
]


@pytest.fixture(scope="module")
def addresses(product: Product, browser: Browser, owner_state: StorageState, tmp_path_factory: Any) -> dict[str, str]:
    """The review page of each row above, by its query."""
    file: Path = tmp_path_factory.mktemp("texts") / "texts.jsonl"
    rows = [{"query_id": row["query"], "candidate_a": "heron", "candidate_b": "ibis", **row} for row in ROWS]
    file.write_text("\n".join(json.dumps(row) for row in rows))
    product.manage("create_evaluation", "reading", "--name", "Reading", "--owner", "owner")
    product.manage("import_comparisons", "reading", str(file))
    context = browser.new_context(base_url=product.address, storage_state=owner_state)
    html = context.request.get("/e/reading/data/comparisons").text()
    context.close()
    # A list shows comparisons in the order in which they came.
    numbers = list(dict.fromkeys(re.findall(r"/e/reading/data/comparisons/(\d+)", html)))
    return {row["query"]: f"/e/reading/review/{number}" for row, number in zip(ROWS, numbers, strict=True)}


def opened(page: Page, address: str) -> Page:
    page.goto(address)
    expect(page.locator("#panel")).to_be_visible()
    return page


def scrolled(page: Page, side: str) -> float:
    """How far along a response is: 0 at its beginning, 1 at its end."""
    share: float = page.locator(f"#side-{side}").evaluate(
        "side => side.scrollTop / (side.scrollHeight - side.clientHeight)"
    )
    return share


def select_words(page: Page, words: str, side: str = "a") -> None:
    """As a mouse does it: the first place of these words within one piece of text."""
    page.locator(f"#text-{side}").evaluate(
        """(turns, words) => {
            const walker = document.createTreeWalker(turns, NodeFilter.SHOW_TEXT);
            while (walker.nextNode()) {
                const at = walker.currentNode.data.indexOf(words);
                if (at < 0) continue;
                getSelection().setBaseAndExtent(walker.currentNode, at, walker.currentNode, at + words.length);
                return;
            }
        }""",
        words,
    )


def highlighted(page: Page) -> list[str]:
    found: list[str] = page.evaluate(
        "[...(CSS.highlights.get('annotation') ?? [])].map(range => range.toString()).sort()"
    )
    return found


def wait_until_highlighted(page: Page, words: list[str]) -> None:
    """Waiting in the page itself would be refused there as evaluation of a string."""
    for _ in range(100):
        if highlighted(page) == words:
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"marked: {highlighted(page)}")


# ---- scrolling, collapsing


def test_responses_scroll_together_in_proportion_until_that_is_turned_off(
    owner_page: Page, addresses: dict[str, str]
) -> None:
    page = opened(owner_page, addresses["long"])
    page.keyboard.press("e")
    button = page.get_by_role("button", name="Scroll together")
    expect(button).to_have_attribute("aria-pressed", "true")
    page.locator("#side-a").evaluate("side => { side.scrollTop = (side.scrollHeight - side.clientHeight) / 2 }")
    wait_until(page, "document.querySelector('#side-b').scrollTop > 0")
    assert scrolled(page, "b") == pytest.approx(scrolled(page, "a"), abs=0.02)

    page.keyboard.press("y")
    expect(button).to_have_attribute("aria-pressed", "false")
    stays = scrolled(page, "b")
    page.locator("#side-a").evaluate("side => { side.scrollTop = 0 }")
    wait_until(page, "document.querySelector('#side-a').scrollTop === 0")
    page.wait_for_timeout(100)
    assert scrolled(page, "b") == pytest.approx(stays, abs=0.02)


def test_what_a_person_chose_to_see_is_there_again_on_the_next_page(
    owner_page: Page, addresses: dict[str, str]
) -> None:
    page = opened(owner_page, addresses["long"])
    for key in ("y", "e", "d"):
        page.keyboard.press(key)
    opened(page, addresses["long"])
    for name, pressed in (("Scroll together", "false"), ("Expand both", "true"), ("Word diff", "true")):
        expect(page.get_by_role("button", name=name)).to_have_attribute("aria-pressed", pressed)
    expect(page.locator("#side-a .word-diff")).to_be_visible()


def test_a_long_response_is_collapsed_until_all_of_it_is_asked_for(owner_page: Page, addresses: dict[str, str]) -> None:
    page = opened(owner_page, addresses["long"])
    heights = {side: page.locator(f"#text-{side}").evaluate("part => part.offsetHeight") for side in "ab"}
    page.locator("#side-a").evaluate("side => { side.scrollTop = side.scrollHeight }")
    page.get_by_role("button", name="Show all of A").click()
    expect(page.get_by_role("button", name="Show all of A")).to_be_hidden()
    assert page.locator("#text-a").evaluate("part => part.offsetHeight") > 2 * heights["a"]
    assert page.locator("#text-b").evaluate("part => part.offsetHeight") == heights["b"]
    page.keyboard.press("e")
    assert page.locator("#text-b").evaluate("part => part.offsetHeight") > 2 * heights["b"]


def test_the_keys_that_scroll_a_page_scroll_the_responses(owner_page: Page, addresses: dict[str, str]) -> None:
    page = opened(owner_page, addresses["long"])
    page.keyboard.press("PageDown")
    wait_until(page, "document.querySelector('#side-b').scrollTop > 0")
    page.keyboard.press("End")
    wait_until(
        page, "(side => side.scrollTop + side.clientHeight > side.scrollHeight - 3)(document.querySelector('#side-b'))"
    )
    assert scrolled(page, "a") == pytest.approx(1, abs=0.02)


def test_very_long_responses_open_and_answer_keys(owner_page: Page, addresses: dict[str, str]) -> None:
    page = opened(owner_page, addresses["huge"])
    page.keyboard.press("a")
    expect(page.locator("#choices .aspect input:checked")).to_have_count(1)
    page.keyboard.press("e")
    expect(page.get_by_role("button", name="Expand both")).to_have_attribute("aria-pressed", "true")


# ---- code


def test_the_code_of_a_block_is_copied_by_its_button_which_says_so(owner_page: Page, addresses: dict[str, str]) -> None:
    owner_page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = opened(owner_page, addresses["code"])
    button = page.locator("#text-a").get_by_role("button", name="Copy")
    button.click()
    expect(page.locator("#text-a .copy")).to_have_text("Copied")
    expect(page.get_by_role("status").filter(has_text="The code was copied.")).to_be_attached()
    assert page.evaluate("navigator.clipboard.readText()") == "x = 1\n"
    expect(button).to_have_text("Copy")  # again, after a while


def test_where_the_clipboard_is_closed_the_code_is_selected(owner_page: Page, addresses: dict[str, str]) -> None:
    owner_page.add_init_script(
        "Object.defineProperty(navigator, 'clipboard', { value: undefined }); document.execCommand = () => false;"
    )
    page = opened(owner_page, addresses["code"])
    page.locator("#text-a").get_by_role("button", name="Copy").click()
    expect(page.locator("#text-a .copy")).to_have_text("Selected")
    assert page.evaluate("getSelection().toString()").strip() == "x = 1"
    expect(page.get_by_role("status").filter(has_text="copy it by key")).to_be_attached()


# ---- from right to left


def test_writing_from_right_to_left_stands_on_its_side(owner_page: Page, addresses: dict[str, str]) -> None:
    page = opened(owner_page, addresses["hebrew"])
    side = page.locator("#side-a")
    for marker in side.locator("li.task .marker").all():
        assert is_on_the_right(side, marker)
    page.keyboard.press("d")
    assert is_on_the_right(side, side.locator("del.only"))  # in the second line; the first begins with an x


def is_on_the_right(side: Locator, part: Locator) -> bool:
    whole, box = side.bounding_box(), part.bounding_box()
    assert whole is not None
    assert box is not None
    return box["x"] > whole["x"] + whole["width"] / 2


# ---- word diff, drawers


def test_the_word_diff_is_fetched_once_and_marks_what_differs(owner_page: Page, addresses: dict[str, str]) -> None:
    page = opened(owner_page, addresses["short"])
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/diff") else None)
    page.keyboard.press("d")
    marked = page.locator("#side-a del.only"), page.locator("#side-b ins.only")
    assert {mark.evaluate("mark => mark.lastChild.data") for mark in marked} == {"blue", "grey"}
    page.keyboard.press("d")
    expect(page.locator("#side-a del.only")).to_be_hidden()
    expect(page.locator("#text-a")).to_be_visible()
    page.keyboard.press("d")
    expect(page.locator("#side-a del.only")).to_be_visible()
    assert len(asked) == 1


def test_a_drawer_leaves_both_responses_in_sight(
    new_page: NewPage, owner_state: StorageState, addresses: dict[str, str]
) -> None:
    for width, height in ((1720, 1000), (1280, 900), (1024, 768)):
        page = opened(
            new_page(storage_state=owner_state, viewport={"width": width, "height": height}), addresses["code"]
        )
        page.keyboard.press("r")
        drawer = page.locator("#reference .drawer-body")
        expect(drawer).to_contain_text("A page of a book.")
        shut = drawer.bounding_box()
        assert shut is not None
        for side in "ab":
            box = page.locator(f"#side-{side}").bounding_box()
            assert box is not None
            assert box["width"] > 200
            assert box["y"] + 100 < height
            apart = shut["y"] + shut["height"] <= box["y"] or shut["x"] >= box["x"] + box["width"]
            assert apart, f"the drawer covers {side} at {width}"
        page.keyboard.press("r")
        expect(drawer).to_be_hidden()


# ---- highlights


def test_selected_words_are_marked_shown_again_changed_and_removed(owner_page: Page, addresses: dict[str, str]) -> None:
    page = opened(owner_page, addresses["code"])
    select_words(page, "third")
    page.get_by_role("button", name="Highlight m", exact=True).last.click()
    form = page.locator("#annotate-a form")
    expect(page.locator(".annotate-button")).to_be_hidden()
    expect(form.get_by_label("Quote")).to_have_value("third")
    form.get_by_label("Comment").fill("Which were the others?")
    form.get_by_label("Aspect").select_option("Depth")
    form.get_by_role("button", name="Highlight", exact=True).click()
    expect(page.locator("#spans-a li")).to_contain_text("Which were the others?")
    expect(page.locator("#spans-a li .badge")).to_have_text("Depth")
    assert highlighted(page) == ["third"]

    opened(page, addresses["code"])
    page.get_by_text("third", exact=True).first.click()
    expect(page.locator("#spans-a li")).to_be_focused()
    assert highlighted(page) == ["third"]
    item = page.locator("#spans-a li")
    item.locator("summary").click()
    item.get_by_label("Comment").fill("Never mind.")
    item.get_by_role("button", name="Save").click()
    expect(item.locator(".annotation-comment")).to_have_text("Never mind.")
    item.get_by_role("button", name="Delete").click()
    expect(item).to_have_count(0)
    assert highlighted(page) == []


def test_a_number_beside_the_text_leads_to_what_was_said_and_the_list_back(
    owner_page: Page, addresses: dict[str, str]
) -> None:
    page = opened(owner_page, addresses["numbers"])
    for words in ("third", "x"):  # the second stands before it, in code that is framed once the page is there
        select_words(page, words)
        page.get_by_role("button", name="Highlight m", exact=True).last.click()
        page.locator("#annotate-a form").get_by_role("button", name="Highlight", exact=True).click()
        expect(page.locator("#spans-a .quote", has_text=words)).to_be_visible()
    opened(page, addresses["numbers"])
    wait_until_highlighted(page, ["third", "x"])
    numbers = page.locator("#side-a .annotation-number")
    expect(numbers).to_have_text(["1", "2"])
    heights = page.evaluate(
        """[...CSS.highlights.get('annotation')].map(range => range.getBoundingClientRect())
            .map(box => [box.top, box.bottom])"""
    )
    for number, (top, bottom) in zip(numbers.all(), heights, strict=True):
        box = number.bounding_box()
        assert box is not None
        assert top < box["y"] + box["height"] / 2 < bottom
    numbers.last.focus()
    page.keyboard.press("Enter")
    item = page.locator("#spans-a li").last
    expect(item).to_be_focused()
    item.get_by_role("button", name="Show highlight 2 in A").click()
    assert page.evaluate("getSelection().toString()") == "third"
    page.keyboard.press("d")
    expect(numbers.first).to_be_hidden()  # the passages are not shown either
    page.keyboard.press("d")
    for left in (1, 0):
        page.locator("#spans-a li").last.get_by_role("button", name="Delete").click()
        expect(numbers).to_have_count(left)


def test_the_same_is_done_by_keys_alone_by_typing_the_words(owner_page: Page, addresses: dict[str, str]) -> None:
    page = opened(owner_page, addresses["keys"])
    page.keyboard.press("m")
    expect(page.locator("#annotate-a").get_by_label("Quote")).to_be_focused()
    page.keyboard.type("no such words")
    page.keyboard.press("Tab")
    page.keyboard.type("Mark this: 1 a b t")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#spans-a [role=alert]")).to_contain_text("this text is not in the response")
    page.locator("#annotate-a").get_by_label("Quote").fill("at this:")
    page.locator("#annotate-a").get_by_label("Quote").press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#spans-a li .annotation-comment")).to_have_text("Mark this: 1 a b t")
    assert highlighted(page) == ["at this:"]
    expect(page.locator("#choices input:checked")).to_have_count(0)
    page.locator("#spans-a li").get_by_role("button", name="Delete").click()
    expect(page.locator("#spans-a li")).to_have_count(0)


def test_a_browser_without_highlights_wraps_the_words_and_changes_none(
    owner_page: Page, addresses: dict[str, str]
) -> None:
    owner_page.add_init_script("Object.defineProperty(CSS, 'highlights', { value: undefined })")
    page = opened(owner_page, addresses["wrapped"])
    before = page.locator("#text-b").inner_text()
    page.get_by_text("Highlight in B").click()
    page.locator("#annotate-b").get_by_label("Quote").fill("👍 at this:\nx = 1\nThe third")
    page.locator("#annotate-b").get_by_role("button", name="Highlight", exact=True).click()
    expect(page.locator("#text-b mark.annotation").first).to_be_visible()
    marked = "".join(page.locator("#text-b mark.annotation").all_text_contents())
    assert marked.split() == ["👍", "at", "this:", "x", "=", "1", "The", "third"]
    assert page.locator("#text-b").inner_text() == before
    page.locator("#spans-b li").get_by_role("button", name="Delete").click()
    expect(page.locator("#text-b mark.annotation")).to_have_count(0)


# ---- without a script, on a phone, for everyone


def test_without_a_script_everything_can_be_read_compared_and_marked(
    new_page: NewPage, owner_state: StorageState, addresses: dict[str, str]
) -> None:
    page = new_page(java_script_enabled=False, storage_state=owner_state)
    page.goto(addresses["long"])
    expect(page.get_by_role("button", name="Scroll together")).to_be_hidden()
    expect(page.get_by_role("button", name="Show all of A")).to_be_hidden()
    page.goto(addresses["short"])
    page.get_by_role("link", name="Word diff").click()
    expect(page.locator("#side-a del.only")).to_be_visible()
    expect(page.locator("#text-a")).to_be_hidden()
    page.get_by_role("link", name="Hide word diff").click()
    page.get_by_text("Highlight in A").click()
    page.locator("#annotate-a").get_by_label("Quote").fill("today")
    page.locator("#annotate-a").get_by_role("button", name="Highlight", exact=True).click()
    expect(page.locator("#spans-a li .quote")).to_have_text("today")
    page.locator("#spans-a li").get_by_role("button", name="Delete").click()
    expect(page.locator("#spans-a li")).to_have_count(0)


def test_on_a_phone_the_responses_stand_one_under_the_other(
    new_page: NewPage, owner_state: StorageState, addresses: dict[str, str]
) -> None:
    page = new_page(viewport=PHONE, is_mobile=True, has_touch=True, storage_state=owner_state)
    opened(page, addresses["long"])
    one, other = (page.locator(f"#side-{side}").bounding_box() for side in "ab")
    assert one is not None
    assert other is not None
    assert one["x"] == other["x"]
    assert one["y"] + one["height"] <= other["y"]
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    page.locator(".section-links").get_by_role("link", name="B", exact=True).tap()
    wait_until(page, "document.querySelector('#side-b').getBoundingClientRect().top < 200")
    expect(page.get_by_role("button", name="Scroll together")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_wrong_with_annotations_diff_and_drawers(
    new_page: NewPage, owner_state: StorageState, addresses: dict[str, str], scheme: str
) -> None:
    page = opened(new_page(color_scheme=scheme, storage_state=owner_state), addresses[f"axe-{scheme}"])
    page.keyboard.press("m")
    page.locator("#annotate-a").get_by_label("Quote").fill("third")
    page.locator("#annotate-a").get_by_role("button", name="Highlight", exact=True).click()
    expect(page.locator("#spans-a li")).to_have_count(1)
    page.locator("#side-a").focus()
    page.keyboard.press("r")
    assert faults_found_by_axe(page) == []
    page.keyboard.press("d")
    expect(page.locator("#side-b ins.only")).to_be_visible()
    assert faults_found_by_axe(page) == []
    page.locator("#spans-a li").get_by_role("button", name="Delete").click()
    expect(page.locator("#spans-a li")).to_have_count(0)
