"""Pictures for the documents, of the running product with its example: `make screenshots`."""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.conftest import FLAGS, chromium, sign_in
from tests.helpers.running_product import ROOT, Product, environment_for, own_database, start, stop

FOLDER: Final = ROOT / "docs" / "screenshots"
WIDTH: Final = 1440
MAX_BYTES: Final = 250_000
EXAMPLE: Final = "/e/example"
JUDGE: Final = "sample-judge-long"
# What the picture's review chooses if the first candidate is on the left. The example's judge differs on one aspect.
REVIEWED: Final = "coding-4"
FIRST_RESPONSE: Final = "You can read the complete file"
CHOICES: Final = "bbbatt"
OTHER_SIDE: Final = str.maketrans("ab", "ba")


@dataclass(frozen=True)
class Shot:
    """One picture: ``open_page`` leads from the overview to what it shows."""

    name: str
    height: int
    open_page: Callable[[Page, Product], None]
    color_scheme: Literal["light", "dark"] = "light"


def open_overview(page: Page, product: Product) -> None:
    page.get_by_role("button", name="Dismiss").click()
    expect(page.get_by_role("heading", name="Try the example")).to_have_count(0)


def open_review(page: Page, product: Product) -> None:
    page.goto(f"{EXAMPLE}/review/{find_comparison(product, REVIEWED)}", wait_until="networkidle")
    place = page.get_by_text(FIRST_RESPONSE).bounding_box()
    assert place
    for key in CHOICES if place["x"] < WIDTH / 4 else CHOICES.translate(OTHER_SIDE):
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    expect(page.locator("#panel")).to_have_attribute("data-stage", "confirm")
    expect(page.locator("[data-primary]:not([aria-disabled])")).to_be_attached()  # Enter waits after the reveal


def open_disagreement(page: Page, product: Product) -> None:
    page.goto(f"{EXAMPLE}/review/disagreements/{find_comparison(product, 'facts-2')}")


def open_results(page: Page, product: Product) -> None:
    page.goto(f"{EXAMPLE}/results")


SHOTS: Final = (
    Shot("overview", 880, open_overview),
    Shot("review", 900, open_review, color_scheme="dark"),
    Shot("resolve", 880, open_disagreement),
    Shot("results", 1110, open_results),
)


def main() -> None:
    path = chromium()
    if path is None:
        sys.exit("No Chromium on this machine: install chromium, or name one in JUDGEWEB_CHROMIUM.")
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as data, own_database() as database, sync_playwright() as playwright:
        product = start(environment_for(Path(data), **database))
        try:
            take_all(playwright.chromium.launch(executable_path=path, args=FLAGS), product)
        finally:
            stop(product)


def take_all(browser: Browser, product: Product) -> None:
    context = browser.new_context()
    sign_in(context.new_page(), product.new_link())
    state = context.storage_state()
    context.close()
    for shot in SHOTS:
        context = browser.new_context(
            base_url=product.address,
            storage_state=state,
            viewport={"width": WIDTH, "height": shot.height},
            color_scheme=shot.color_scheme,
        )
        page = context.new_page()
        page.goto(f"{EXAMPLE}/")
        shot.open_page(page, product)
        page.wait_for_load_state("networkidle")
        take(page, FOLDER / f"{shot.name}.png")
        context.close()


def take(page: Page, file: Path) -> None:
    size = len(page.screenshot(path=file, animations="disabled"))
    print(f"{file.name}: {size:,} bytes")
    if size > MAX_BYTES:
        sys.exit(f"{file.name} is larger than {MAX_BYTES:,} bytes.")


def find_comparison(product: Product, query_key: str) -> str:
    code = f"print(Comparison.objects.get(query__key={query_key!r}).pk)"
    return product.manage("shell", "-c", code).stdout.split()[-1]


if __name__ == "__main__":
    main()
