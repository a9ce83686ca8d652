"""A study with a reviewer for browser tests of the review page."""

import json
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Error, Page, StorageState, expect

from tests.browser.conftest import sign_in
from tests.helpers.running_product import Product

COMPARISON = {
    "candidate_a": "alpha",
    "response_a": "Rayleigh scattering.",
    "candidate_b": "beta",
    "response_b": "It reflects the sea.",
}
ASPECTS = ("helpfulness", "factuality", "clarity", "depth", "engagement", "safety")


@dataclass
class Study:
    """An evaluation of its own in the running product."""

    product: Product
    slug: str
    folder: Path
    people: dict[str, StorageState] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"/e/{self.slug}/review"

    def person(self, browser: Browser, name: str = "rita", role: str = "reviewer") -> StorageState:
        """The cookies of somebody who reviews here."""
        if name not in self.people:
            context = browser.new_context(base_url=self.product.address)
            sign_in(context.new_page(), self.link(name, role))
            self.people[name] = context.storage_state()
            context.close()
        return self.people[name]

    def link(self, name: str, role: str = "reviewer") -> str:
        """With which somebody who reviews here signs in."""
        options = ("--create", "--evaluation", self.slug, "--role", role)
        told = self.product.manage("sign_in_link", f"{name}-{self.slug}", *options).stdout
        return told.split()[-1]

    def reviews(self, name: str = "rita") -> list[dict[str, Any]]:
        """That person's reviews, as they would be exported."""
        out = self.folder / f"{self.slug}.jsonl"
        self.product.manage("export", self.slug, "--format", "jsonl", "--out", str(out))
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        people = [person for row in rows for person in row["people"]]
        return [person for person in people if person["rater"] == f"{name}-{self.slug}"]


def make_study(
    product: Product, folder: Path, *, comparisons: int = 6, judged: bool = True, rubric: str = "six-aspect"
) -> Study:
    slug = f"study-{secrets.token_hex(4)}"
    rows = [{**COMPARISON, "query_id": f"q{number}", "query": f"Question {number}?"} for number in range(comparisons)]
    file = folder / f"{slug}-rows.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    steps: list[tuple[str, ...]] = [
        ("create_evaluation", slug, "--name", f"Study {slug}", "--rubric", rubric),
        ("import_comparisons", slug, str(file)),
    ]
    if judged:
        steps += [
            ("create_judge", slug, "--name", "longest", "--model", "longest"),
            ("run_judge", slug, "--judge", "longest", "--wait"),
        ]
    for step in steps:
        product.manage(*step)
    return Study(product, slug, folder)


def choose_all(page: Page, key: str = "a") -> None:
    for _ in ASPECTS:
        page.keyboard.press(key)


def shown(page: Page) -> str:
    """Which comparison stands there."""
    pk = page.locator("#comparison").get_attribute("data-comparison")
    assert pk
    return pk


def expect_other_than(page: Page, comparison: str) -> None:
    expect(page.locator(f'#comparison[data-comparison="{comparison}"]')).to_have_count(0)
    expect(page.locator("#panel")).to_have_attribute("data-stage", "choose")


def expect_revealed(page: Page) -> None:
    """The judge's choices stand there, and for long enough to be confirmed."""
    expect(page.locator("#panel")).to_have_attribute("data-stage", "confirm")
    expect(page.locator("[data-primary]:not([aria-disabled])")).to_be_attached()


def expect_next_is_here(page: Page) -> None:
    """The next comparison lies in the page already."""
    expect(page.locator("#review-page[data-has-next]")).to_be_attached()


def wait_until(page: Page, expression: str) -> None:
    """Until it is true in the page: where it has to look again, `wait_for_function` does what our pages forbid."""
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"never true: {expression}")


def expect_all_sent(page: Page) -> None:
    expect_unsent(page, [])


def expect_unsent(page: Page, kinds: list[str]) -> None:
    """Also where the page goes on to the next comparison meanwhile."""
    for _ in range(200):
        with suppress(Error):  # no page to look into while it goes on
            if [item["kind"] for item in unsent(page)] == kinds:
                return
        page.wait_for_timeout(100)
    raise AssertionError(f"still in this browser: {unsent(page)}")


def unsent(page: Page) -> list[dict[str, Any]]:
    kept = page.evaluate("Object.entries(localStorage).filter(([name]) => name.startsWith('judgeweb outbox'))")
    return sorted((json.loads(item) for _, item in kept), key=itemgetter("at"))
