"""Pictures for the documents, of the running product with its example: `make screenshots`."""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from tests.browser.conftest import FLAGS, chromium, sign_in
from tests.helpers.running_product import ROOT, Product, environment_for, own_database, start, stop

FOLDER = ROOT / "docs" / "screenshots"
DESKTOP = {"viewport": {"width": 1280, "height": 860}}
PHONE = {"viewport": {"width": 390, "height": 844}}
DARK = {"color_scheme": "dark"}


@dataclass(frozen=True)
class Shot:
    name: str
    page: str
    options: Mapping[str, Any]
    query: str = ""  # whose comparison to open
    keys: str = ""  # pressed before the picture is taken


SHOTS = (
    Shot("review", "review", DESKTOP, query="coding-1", keys="bata"),
    Shot("review-dark", "review", DESKTOP | DARK, query="data-2", keys="bb"),
    Shot("review-phone", "review", PHONE, query="facts-2"),
    Shot("report", "report", DESKTOP),
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


def take_all(browser: Browser, product: Product, folder: Path = FOLDER, shots: Sequence[Shot] = SHOTS) -> None:
    context = browser.new_context()
    sign_in(context.new_page(), product.new_link())
    state = context.storage_state()
    for shot in shots:
        page = browser.new_context(base_url=product.address, storage_state=state, **shot.options).new_page()
        page.goto(address(shot, product), wait_until="networkidle")
        for key in shot.keys:
            page.keyboard.press(key)
        page.screenshot(path=folder / f"{shot.name}.png")
    context.close()


def address(shot: Shot, product: Product) -> str:
    page = f"/e/example/{shot.page}"
    if not shot.query:
        return page
    code = f"print(Comparison.objects.get(query__key={shot.query!r}).pk)"
    return f"{page}/{product.manage('shell', '-c', code).stdout.split()[-1]}"


if __name__ == "__main__":
    main()
