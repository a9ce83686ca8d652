"""The main job, from a file to a labelled data set, in a real browser on the running product."""

import json
import re
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Download, Page, expect

from tests.browser.conftest import sign_in
from tests.browser.review_study import expect_revealed
from tests.helpers.running_product import Product

pytestmark = [pytest.mark.browser, pytest.mark.data, pytest.mark.worker]

REVIEWS = 10
ASPECTS = ["helpfulness", "factuality", "clarity", "depth", "engagement", "safety"]
KEYS = {"a": "A", "t": "tie", "b": "B"}
FLIPPED = {"A": "B", "B": "A", "tie": "tie"}
ONE_MINUTE = 60_000


def test_from_a_file_to_a_labelled_data_set(page: Page, product: Product, acceptance_data: Path) -> None:
    sign_in(page, product.new_link())
    make_evaluation(page)
    import_pandalm(page, acceptance_data / "pandalm" / "testset-v1.json")
    run_the_baseline(page)
    chosen = review_by_keyboard(page)
    see_agreement(page)
    check_data_set(export(page), chosen)


def make_evaluation(page: Page) -> None:
    page.goto("/")
    page.get_by_role("link", name="New evaluation").first.click()
    page.get_by_label("Name").first.fill("PandaLM")
    page.get_by_role("button", name="Create").click()
    expect(page).to_have_url(re.compile("/e/pandalm/data$"))


def import_pandalm(page: Page, file: Path) -> None:
    page.goto("/e/pandalm/data")
    page.get_by_label("Drop files here, or choose them").set_input_files(file)
    page.get_by_role("button", name="Import 999 rows").click(timeout=ONE_MINUTE)
    expect(page.get_by_role("link", name="See results")).to_be_visible(timeout=ONE_MINUTE)
    expect(page.locator("main")).to_contain_text("999 comparisons")
    expect(page.locator("main")).to_contain_text("2,997 verdicts")


def run_the_baseline(page: Page) -> None:
    page.goto("/e/pandalm/judges/new")
    page.get_by_role("button", name="Create judge").click()
    page.goto("/e/pandalm/judges/runs/new")
    expect(page.locator("#estimate")).to_contain_text("1,998")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#progress")).to_contain_text("1,998 / 1,998", timeout=2 * ONE_MINUTE)
    expect(page.locator("main")).to_contain_text("rule-based")


def review_by_keyboard(page: Page) -> dict[str, dict[str, str]]:
    """Ten comparisons without the mouse; gives what was chosen by the text that stood on the left."""
    page.goto("/e/pandalm/review")
    chosen = {}
    for number in range(REVIEWS):
        comparison_box = page.locator("#comparison")
        expect(page.locator("#progress")).to_contain_text(f"{number} of 999")
        expect(page.locator("#panel")).to_have_attribute("data-stage", "choose")
        comparison = comparison_box.get_attribute("data-comparison")
        assert comparison
        assert "longest" not in comparison_box.inner_html(), "the judge shows before the first save"
        keys = list(islice(cycle("atb"), number, number + len(ASPECTS)))
        for key in keys:
            page.keyboard.press(key)
        chosen[comparison] = dict(zip(ASPECTS, (KEYS[key] for key in keys), strict=True))
        page.keyboard.press("Enter")
        expect_revealed(page)
        expect(page.locator("#agreement")).to_contain_text("rule-based")
        page.keyboard.press("Enter")
        expect(page.locator(f'#comparison[data-comparison="{comparison}"]')).to_have_count(0)
    assert len(chosen) == REVIEWS
    return chosen


def see_agreement(page: Page) -> None:
    page.goto("/e/pandalm/results")
    expect(page.locator("main")).to_contain_text("rule-based")
    page.get_by_role("link", name="Methodology").click()
    for aspect in ASPECTS:
        expect(page.locator(f"#aspect-{aspect}")).to_contain_text(re.compile(r"\b10\b"))
    expect(page.locator("#aspect-overall")).to_contain_text("annotator1")


def export(page: Page) -> Download:
    page.goto("/e/pandalm/export")
    expect(page.locator("#preview-everything")).to_contain_text(re.compile(r"999\s+(rows|comparisons)"))
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Export Everything").click()
    return downloading.value


def check_data_set(download: Download, chosen: dict[str, dict[str, str]]) -> None:
    """Every comparison is there, and what the person chose stands in terms of the candidates."""
    rows = [json.loads(line) for line in Path(download.path()).read_text().splitlines()]
    assert len(rows) == 999
    reviews = [person for row in rows for person in row["people"] if person["rater"] == "owner"]
    assert len(reviews) == REVIEWS
    stored = sorted(json.dumps(turned(review), sort_keys=True) for review in reviews)
    assert stored == sorted(json.dumps(choices, sort_keys=True) for choices in chosen.values())
    assert {review["shown"] for review in reviews} <= {"as_stored", "swapped"}
    assert all(review["blind"] for review in reviews)
    assert all(judge["remark"] == "rule-based" for row in rows for judge in row["judges"])


def turned(review: dict[str, Any]) -> dict[str, str]:
    """The first choices as the person saw them, the left response being A."""
    first = {key: choice["first"] for key, choice in review["choices"].items()}
    return {key: FLIPPED[choice] if review["shown"] == "swapped" else choice for key, choice in first.items()}
