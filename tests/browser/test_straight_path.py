"""From two files to a finished judge run and its results: every click, field and screen is counted."""

import json
import re
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import FilePayload, Locator, Page, expect

from tests.browser.conftest import sign_in
from tests.helpers.llm_server import llm_server
from tests.helpers.running_product import Product

pytestmark = [pytest.mark.browser, pytest.mark.worker]

PROMPTS = 12
MAX_CLICKS, MAX_FIELDS, SCREENS = 8, 4, ["data", "judges/runs/new", "judges/runs/1"]
ONE_MINUTE = 60_000


@dataclass
class CountingUser:
    """A user whose actions are named and counted: a drop is one click, a text box is one field."""

    page: Page
    clicks: list[str] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    screens: list[str] = field(default_factory=list)

    def see(self) -> None:
        path = re.sub(r"^.*/e/[^/]+/|\?.*$", "", self.page.url)
        path = re.sub(r"runs/\d+$", "runs/1", path)
        if path not in self.screens:
            self.screens.append(path)

    def drop(self, files: list[FilePayload]) -> None:
        self.page.locator("input[type=file]").set_input_files(files)
        self.clicks.append("drop the files")

    def click(self, name: str, target: Locator) -> None:
        target.click(timeout=ONE_MINUTE)
        self.clicks.append(name)

    def fill(self, name: str, target: Locator, text: str) -> None:
        target.fill(text)
        self.fields.append(name)


def responses(model: str) -> FilePayload:
    lines = [
        json.dumps({"query_id": f"q{at}", "query": f"Question {at}?", "response": f"{model}, answer {at}"})
        for at in range(PROMPTS)
    ]
    return {"name": f"outputs-{model}.jsonl", "mimeType": "application/jsonl", "buffer": "\n".join(lines).encode()}


def test_two_files_become_a_finished_run_with_results_in_few_clicks(page: Page, product: Product) -> None:
    sign_in(page, product.new_link())
    page.goto("/new")
    page.get_by_label("Name").first.fill("Two models")
    page.get_by_role("button", name="Create").click()
    user = CountingUser(page)
    with llm_server(models=["small-model"]) as server:
        user.see()
        user.drop([responses("falcon-7b-v2"), responses("baseline-prod")])
        expect(page.locator("main")).to_contain_text(f"{PROMPTS} comparisons", timeout=ONE_MINUTE)
        user.click("Import", page.get_by_role("button", name=re.compile("^Import")))
        user.click("Run a judge", page.get_by_role("link", name="Run a judge").first)
        page.wait_for_url(re.compile("/judges/runs/new"))
        user.see()
        provider = page.get_by_role("link", name="Other", exact=True)
        if not provider.is_visible():  # folded away where other tests have added endpoints
            user.click("Add a provider", page.get_by_text("Add a provider", exact=True))
        user.click("Other", provider)
        user.fill("Base URL", page.get_by_label("Base URL"), server.base_url)
        user.fill("API key", page.get_by_label("API key").first, "sk-test-key")
        user.click("Test", page.get_by_role("button", name="Test", exact=True))
        expect(page.locator("main")).to_contain_text("Connected.", timeout=ONE_MINUTE)
        user.click("Run", page.get_by_role("button", name="Run", exact=True))
        page.wait_for_url(re.compile(r"/judges/runs/\d+$"))
        user.see()
        expect(page.locator("main")).to_contain_text(f"{2 * PROMPTS} / {2 * PROMPTS} calls done", timeout=ONE_MINUTE)
        expect(page.get_by_role("heading", name="Results")).to_be_visible()
        expect(page.locator("main")).to_contain_text("baseline-prod vs. falcon-7b-v2")
    assert user.screens == SCREENS
    assert len(user.clicks) <= MAX_CLICKS, user.clicks
    assert len(user.fields) <= MAX_FIELDS, user.fields
    expect(page.get_by_role("link", name="See results")).to_be_visible()
