"""A whole shift on the running product: by keyboard alone, by mouse alone, and with a thumb on a phone."""

import json
import re
from pathlib import Path
from typing import Any, Protocol

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPage, sign_in
from tests.browser.review_study import expect_revealed
from tests.helpers.running_product import Product

pytestmark = [pytest.mark.browser, pytest.mark.worker]

PHONE = {"width": 390, "height": 844}
ASPECTS = ("helpfulness", "factuality", "clarity", "depth", "engagement", "safety")
COMPARISONS = 5
KEY = {"A": "a", "tie": "t", "B": "b"}

SHOW_THE_JUDGE = """
study = Evaluation.objects.get(slug="shift")
judge = Judge.objects.get(evaluation=study, name="longest")
Evaluation.objects.filter(pk=study.pk).update(shown_judge=judge, reviews_wanted=3)
"""
COUNT = """
import json
mine = Review.objects.filter(rater__user__username={name!r}, comparison__evaluation__slug="shift")
changed = 0
for review in mine:
    given = lambda stage: dict(review.verdicts.filter(stage=stage).values_list("aspect__key", "choice"))
    said = {{stage: given(stage) for stage in ("first", "final")}}
    changed += sum(said["first"][key] != said["final"][key] for key in said["first"])
print(json.dumps({{
    "states": sorted(mine.values_list("state", flat=True)),
    "changed": changed,
    "verdicts": Verdict.objects.filter(review__in=mine).count(),
    "blind": sorted(set(mine.values_list("blind", flat=True))),
    "notes": sorted(filter(None, mine.values_list("note", flat=True))),
    "skips": [one.after["reason"] for one in Event.objects.filter(user__username={name!r}, verb="skipped")],
    "undone": Event.objects.filter(user__username={name!r}, verb="undid").count(),
}}))
"""


@pytest.fixture(scope="module")
def study(product: Product, tmp_path_factory: pytest.TempPathFactory) -> Product:
    """Five comparisons that the baseline has judged in both orders, its choices to be revealed."""
    file = Path(tmp_path_factory.mktemp("shift")) / "shift.jsonl"
    rows = [
        {
            "query_id": f"q{number}",
            "query": f"Explain case {number}.",
            "candidate_a": "short-talker",
            "response_a": f"Case {number} is short.",
            "candidate_b": "long-talker",
            "response_b": f"Case {number} is long. " * 12,
        }
        for number in range(COMPARISONS)
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    run = product.manage
    run("create_evaluation", "shift", "--name", "A shift", "--rubric", "six-aspect", "--owner", "owner")
    run("import_comparisons", "shift", str(file))
    run("create_judge", "shift", "--name", "longest", "--model", "longest")
    run("run_judge", "shift", "--judge", "longest", "--wait")
    run("shell", "-c", SHOW_THE_JUDGE)
    return product


class Hand(Protocol):
    """The one way in which somebody works the page."""

    def begin(self) -> None: ...
    def choose(self, *choices: str) -> None: ...
    def change(self, aspect: str, choice: str) -> None: ...
    def note(self, words: str) -> None: ...
    def save(self) -> None: ...
    def confirm(self) -> None: ...
    def confirm_and_stay(self) -> None: ...
    def undo(self) -> None: ...
    def skip(self, reason: str) -> None: ...


class Keyboard:
    """Nothing but keys, from the address of the evaluation on."""

    def __init__(self, page: Page) -> None:
        self.page, self.press, self.type = page, page.keyboard.press, page.keyboard.type

    def begin(self) -> None:
        self.page.goto("/e/shift/")
        for _ in range(40):
            self.press("Tab")
            focused = self.page.evaluate("document.activeElement.getAttribute('href') ?? ''")
            if focused.endswith("/e/shift/review"):
                break
        self.press("Enter")

    def choose(self, *choices: str) -> None:
        for choice in choices:
            self.press(KEY[choice])

    def change(self, aspect: str, choice: str) -> None:
        self.press(str(ASPECTS.index(aspect) + 1))
        self.press(KEY[choice])

    def note(self, words: str) -> None:
        self.press("n")
        self.type(words)  # letters that are keys elsewhere: none of them may act
        self.press("Escape")

    def save(self) -> None:
        self.press("Enter")

    def confirm(self) -> None:
        self.press("Enter")

    def undo(self) -> None:
        self.press("u")

    def skip(self, reason: str) -> None:
        self.press("s")
        self.type(reason)
        self.press("Enter")


class Mouse:
    """Nothing but the pointer, and the keyboard only for words in a field."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def point(self, selector: str) -> None:
        self.page.locator(selector).first.click()

    def begin(self) -> None:
        self.page.goto("/e/shift/")
        self.point("a[href='/e/shift/review']:visible")

    def choose(self, *choices: str) -> None:
        for aspect, choice in zip(ASPECTS, choices, strict=True):
            self.change(aspect, choice)

    def change(self, aspect: str, choice: str) -> None:
        self.point(f"[data-aspect={aspect}] .segment:has(input[value={choice}])")

    def note(self, words: str) -> None:
        self.point("#note summary")
        self.page.locator("#note-text").fill(words)

    def save(self) -> None:
        self.point("#panel[data-stage=choose] [data-primary]")

    def confirm(self) -> None:
        self.point("#panel[data-stage=confirm] [data-primary]")

    def undo(self) -> None:
        self.point("#undo button")

    def skip(self, reason: str) -> None:
        self.point("#skip summary")
        self.page.locator("#skip-reason").fill(reason)
        self.point("#skip button")


class Thumb(Mouse):
    """The same by touch, on a narrow screen."""

    def point(self, selector: str) -> None:
        self.page.locator(selector).first.tap()

    def begin(self) -> None:
        self.page.goto("/e/shift/")
        link = self.page.locator("main a[href='/e/shift/review']").first
        link.tap()


HANDS = [("keyboard", Keyboard, {}), ("mouse", Mouse, {}), ("phone", Thumb, {"viewport": PHONE, "has_touch": True})]


@pytest.mark.parametrize(("name", "hand", "options"), HANDS, ids=[name for name, *_ in HANDS])
def test_a_whole_shift(new_page: NewPage, study: Product, name: str, hand: type[Any], options: dict[str, Any]) -> None:
    page = new_page(**options, is_mobile=name == "phone")
    person = f"{name}-worker"
    made = study.manage("sign_in_link", person, "--create", "--evaluation", "shift", "--role", "reviewer")
    sign_in(page, made.stdout.split()[-1])
    work_a_shift(page, hand(page))
    told = json.loads(study.manage("shell", "-c", COUNT.format(name=person)).stdout.splitlines()[-1])
    assert told["states"] == ["final"] * COMPARISONS
    assert told["changed"] == 1
    assert told["verdicts"] == COMPARISONS * len(ASPECTS) * 2
    assert told["blind"] == [True]
    assert told["notes"] == ["about abstraction and depth"]
    assert told["skips"] == ["too unclear"]
    assert told["undone"] == 1


def work_a_shift(page: Page, hand: Hand) -> None:
    hand.begin()
    arrive(page)
    hand.choose("A", "A", "tie", "B", "B", "tie")  # the first: one choice is overridden after the reveal
    hand.save()
    revealed(page)
    hand.change("clarity", "A")
    first = comparison(page)
    hand.confirm()
    arrive(page, after=first)
    second = comparison(page)
    hand.skip("too unclear")  # the second: left for later
    arrive(page, after=second)
    hand.choose(*["tie"] * 6)  # the third: confirmed, taken back, confirmed again
    hand.save()
    revealed(page)
    third = comparison(page)
    hand.confirm()
    arrive(page, after=third)
    hand.undo()
    revealed(page)
    assert comparison(page) == third
    hand.confirm()
    arrive(page, after=third)
    hand.choose(*["B"] * 6)  # the fourth: with a note
    hand.note("about abstraction and depth")
    fourth = comparison(page)
    hand.save()
    revealed(page)
    hand.confirm()
    arrive(page, after=fourth)
    for _ in range(2):  # the fifth, and the one that was skipped
        at = comparison(page)
        hand.choose(*["A"] * 6)
        hand.save()
        revealed(page)
        hand.confirm()
        expect(page.locator(f"#comparison[data-comparison='{at}']")).to_have_count(0)
    expect(page.get_by_text(re.compile("You reviewed all 5"))).to_be_visible()


def comparison(page: Page) -> str:
    number = page.locator("#comparison").get_attribute("data-comparison")
    assert number
    return number


def arrive(page: Page, after: str = "") -> None:
    """A comparison to be judged blind, another than the one before."""
    if after:
        expect(page.locator("#comparison")).not_to_have_attribute("data-comparison", after)
    expect(page.locator("#panel")).to_have_attribute("data-stage", "choose")
    page.wait_for_load_state()  # what keys do comes with the scripts
    inside = page.locator("#comparison").inner_html()
    for word in ("long-talker", "short-talker", "longest"):
        assert word not in inside


def revealed(page: Page) -> None:
    expect_revealed(page)
    expect(page.locator("#agreement")).to_contain_text("longest")
