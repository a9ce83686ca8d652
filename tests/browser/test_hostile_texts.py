"""Texts that try to run on the reader's page: in every place that somebody else writes, on every page that shows it."""

import json
import re
from collections import Counter
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, Route, StorageState, expect

from tests.browser.conftest import NewPage, too_wide
from tests.browser.review_study import expect_revealed
from tests.helpers.running_product import Product
from tests.rendering import payloads

pytestmark = [pytest.mark.browser, pytest.mark.worker]

ON_A_PAGE: Final = 8  # payloads in each text, so that all of them meet every page in a few visits
OF_A_KIND: Final = 9  # pages of one kind that are looked at: as many as there are comparisons
ASPECTS: Final = ("helpfulness", "factuality", "clarity", "depth", "engagement", "safety")

# A file with NUL in it is refused by the import: it never comes to a page.
PAYLOADS: Final = tuple(text.replace("\x00", "") for text in payloads.PAYLOADS)
NOTE_DIALOGS: Final = """
window.ran = [];
for (const one of ["alert", "prompt", "confirm"]) window[one] = (what) => window.ran.push(what);
"""
WRITE_EVERYWHERE: Final = """
import json, sys
from evaluations.domain.choices import Choice
payloads = json.load(open({file!r}))
study = Evaluation.objects.get(slug="hostile")
owner = User.objects.get(username="owner")
judge = Judge.objects.get(evaluation=study, name="longest")
Evaluation.objects.filter(pk=study.pk).update(
    shown_judge=judge, name=payloads[0][:200], description=payloads[1], resolve_judge_disagreements=True,
    guidelines="\\n\\n".join(payloads),
)
User.objects.filter(pk=owner.pk).update(display_name=payloads[2][:120].ljust(120, "n"))
Query.objects.filter(evaluation=study).update(category=payloads[3][:120].ljust(120, "n"))
Verdict.objects.filter(rater__judge=judge).update(rationale=payloads[4])
for place, call in enumerate(Call.objects.filter(judge=judge)):
    Call.objects.filter(pk=call.pk).update(rationale="\\n\\n".join(payloads[place % 8::8]), error=payloads[5])
for comparison in Comparison.objects.filter(evaluation=study):
    Comment.objects.create(comparison=comparison, user=owner, text="\\n\\n".join(payloads[:20]))
"""


@pytest.fixture(scope="module")
def hostile(product: Product, tmp_path_factory: pytest.TempPathFactory) -> Product:
    """An evaluation in which every text that a stranger may have written is a payload, or many."""
    folder = tmp_path_factory.mktemp("hostile")
    groups = [PAYLOADS[start : start + ON_A_PAGE] for start in range(0, len(PAYLOADS), ON_A_PAGE)]
    rows = [
        {
            "query_id": f"q{number}",
            "query": "\n\n".join(group),
            "context": "\n\n".join(group),
            "reference": "\n\n".join(group),
            "candidate_a": f"a {group[0]}".ljust(150, "n"),
            "response_a": "\n\n".join(group),
            "candidate_b": f"b {group[-1]}".ljust(150, "n"),
            "response_b": "".join(reversed(group)),
        }
        for number, group in enumerate(groups)
    ]
    file, texts = folder / "hostile.jsonl", folder / "payloads.json"
    file.write_text("\n".join(map(json.dumps, rows)))
    texts.write_text(json.dumps(PAYLOADS))
    run = product.manage
    run("create_evaluation", "hostile", "--name", "Hostile", "--rubric", "six-aspect", "--owner", "owner")
    run("import_comparisons", "hostile", str(file))
    run("create_judge", "hostile", "--name", "longest", "--model", "longest")
    run("run_judge", "hostile", "--judge", "longest", "--wait")
    run("shell", "-c", WRITE_EVERYWHERE.format(file=str(texts)))
    return product


def test_the_corpus_is_large_enough() -> None:
    assert len(set(PAYLOADS)) >= 60


def test_nothing_runs_while_somebody_reviews_it_all(
    new_page: NewPage, owner_state: StorageState, hostile: Product
) -> None:
    page = new_page(storage_state=owner_state)
    watched(page)
    page.goto("/e/hostile/review")
    reviewed = 0
    while page.locator("#comparison").count():
        at = page.locator("#comparison").get_attribute("data-comparison")
        for aspect in ASPECTS:
            page.locator(f"[data-aspect={aspect}] .segment.{'A' if reviewed % 2 else 'B'}").click()
        page.locator("#note summary").click()
        page.locator("#note-text").fill(PAYLOADS[reviewed % len(PAYLOADS)])
        page.locator("[data-primary]").click()
        expect(page.locator("#panel")).to_have_attribute("data-stage", "confirm")
        unhurt(page)
        expect_revealed(page)
        page.locator("[data-primary]").click()
        expect(page.locator(f"#comparison[data-comparison='{at}']")).to_have_count(0)
        unhurt(page)
        reviewed += 1
    assert reviewed == -(-len(PAYLOADS) // ON_A_PAGE)


def test_nothing_runs_on_any_page_that_shows_it_and_long_names_fit_a_phone(
    browser: Browser, new_page: NewPage, owner_state: StorageState, hostile: Product
) -> None:
    page = new_page(storage_state=owner_state, viewport={"width": 390, "height": 844}, is_mobile=True)
    watched(page)
    seen, waiting, kinds = set[str](), ["/e/hostile/"], Counter[str]()
    wide = {}
    while waiting:
        address = waiting.pop(0)
        kind = re.sub(r"\d+", "1", address.partition("?")[0])
        if address in seen or kinds[kind] == OF_A_KIND or address.partition("?")[0].endswith(("/file", "/sign-out")):
            continue
        kinds[kind] += 1
        seen.add(address)
        answer = page.goto(address)
        assert answer is not None
        assert answer.status == 200, address
        unhurt(page)
        if pixels := too_wide(page):
            wide[address] = pixels
        waiting += page.eval_on_selector_all(
            "a[href^='/e/hostile/']", "links => links.map(link => link.getAttribute('href').split('#')[0])"
        )
    for word in ("disagreements", "comparisons", "results", "guidelines", "activity"):
        assert any(f"/{word}" in address for address in seen), word
    assert wide == {}


def watched(page: Page) -> None:
    """Whatever runs says so by a dialog, which is noted instead of shown, or asks another server for something."""
    page.add_init_script(NOTE_DIALOGS)
    page.route(lambda address: "127.0.0.1" not in address, refuse)


def refuse(route: Route) -> None:
    raise AssertionError(f"the page asks for {route.request.url}")


def unhurt(page: Page) -> None:
    assert page.evaluate("window.ran") == []
    # What draws plots lays them out by script; their numbers come as data.
    made = "main script:not([src], [type='application/json']), main [style]:not(figure.plot *)"
    assert page.locator(f"main iframe, main object, main embed, {made}").count() == 0
    hrefs = page.eval_on_selector_all("a[href]", "links => links.map(link => link.protocol)")
    assert set(hrefs) <= {"http:", "https:"}
    fetched = page.eval_on_selector_all("main img[src]", "images => images.map(image => image.src)")
    assert fetched == []
