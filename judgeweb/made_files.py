"""A static file that is made on this machine, from an installed package, and not kept in the source."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage, Storage

from evaluations.charts.browser_bundle import build_browser_bundle

FOLDER: Final = "made"
VEGA: Final = "vega.js"


class MadeFilesFinder(BaseFinder):
    """``made/vega.js``: for collectstatic, and, while developing, for the first page that asks for it."""

    def __init__(self, app_names: Iterable[str] | None = None) -> None:
        self.storage = FileSystemStorage(settings.DATA_DIR / FOLDER)
        self.storage.prefix = FOLDER  # type: ignore[attr-defined]

    def check(self, **kwargs: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        if path != f"{FOLDER}/{VEGA}":
            return []
        bundle = str(build_browser_bundle(settings.DATA_DIR / FOLDER / VEGA))
        return [bundle] if find_all else bundle

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Storage]]:
        build_browser_bundle(settings.DATA_DIR / FOLDER / VEGA)
        yield VEGA, self.storage
