"""The six places of an evaluation, their tabs, and which of them a page belongs to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from django.urls import reverse

from evaluations.access import Action


class Tab(NamedTuple):
    label: str
    url_name: str
    action: Action


class Place(NamedTuple):
    label: str
    icon: str
    tabs: tuple[Tab, ...]


LOOK, MANAGE, SEE_ALL = Action.LOOK, Action.MANAGE, Action.SEE_ALL

PLACES: Final = (
    Place("Overview", "overview", (Tab("Overview", "evaluation", LOOK),)),
    Place(
        "Data",
        "data",
        (
            Tab("Files", "imports", MANAGE),
            Tab("Comparisons", "comparisons", LOOK),
            Tab("Models", "model_families", MANAGE),
            Tab("Pairs", "pairs", MANAGE),
            Tab("Duplicates", "duplicates", MANAGE),
            Tab("Saved filters", "saved_filters", SEE_ALL),
        ),
    ),
    Place(
        "Judges",
        "judges",
        (Tab("Judges", "judges", LOOK), Tab("Runs", "runs", LOOK), Tab("Rubrics", "rubrics", LOOK)),
    ),
    Place(
        "Review",
        "review",
        (
            Tab("Review", "review", Action.REVIEW),
            Tab("Resolve", "disagreements", LOOK),
            Tab("Queues", "queues", SEE_ALL),
        ),
    ),
    Place("Results", "results", (Tab("Results", "report", LOOK),)),
    Place("Export", "export", (Tab("Export", "exports", Action.EXPORT),)),
    Place(
        "Settings",
        "settings",
        (
            Tab("General", "evaluation_settings", MANAGE),
            Tab("Members", "members", LOOK),
            Tab("Guidelines", "guidelines", LOOK),
            Tab("Decisions", "evaluation_decisions", MANAGE),
            Tab("Webhooks", "webhooks", MANAGE),
            Tab("Activity", "activity", SEE_ALL),
            Tab("Archive and delete", "evaluation_archive", MANAGE),
        ),
    ),
)
SETTINGS: Final = "settings"


@dataclass(frozen=True)
class Link:
    label: str
    url: str
    is_current: bool


@dataclass(frozen=True)
class PlaceLink(Link):
    icon: str
    tabs: tuple[Link, ...]

    @property
    def has_tabs(self) -> bool:
        return len(self.tabs) > 1


@dataclass(frozen=True)
class Navigation:
    """The places that a person may open, with the settings apart from the rest."""

    places: tuple[PlaceLink, ...]
    settings: PlaceLink | None

    @property
    def everything(self) -> tuple[PlaceLink, ...]:
        return (*self.places, *((self.settings,) if self.settings else ()))

    @property
    def current(self) -> PlaceLink | None:
        return next((place for place in self.everything if place.is_current), None)


def build_navigation(slug: str, path: str, may: Mapping[str, bool]) -> Navigation:
    """What a person with these permissions (``{"manage": True}``) may open from the page at ``path``."""
    allowed = {
        place: [(tab, reverse(tab.url_name, args=[slug])) for tab in place.tabs if may.get(tab.action.name.lower())]
        for place in PLACES
    }
    urls = [url for tabs in allowed.values() for _, url in tabs]
    current_url = max((url for url in urls if is_within(path, url)), key=len, default="")
    links = [build_place(place, tabs, current_url) for place, tabs in allowed.items() if tabs]
    return Navigation(
        tuple(link for link in links if link.icon != SETTINGS),
        next((link for link in links if link.icon == SETTINGS), None),
    )


def build_place(place: Place, tabs: list[tuple[Tab, str]], current_url: str) -> PlaceLink:
    links = tuple(Link(tab.label, url, url == current_url) for tab, url in tabs)
    return PlaceLink(place.label, links[0].url, any(link.is_current for link in links), place.icon, links)


def is_within(path: str, url: str) -> bool:
    """Whether a page is the page of a tab or one below it. The overview has no pages below it."""
    return path == url or (not url.endswith("/") and path.startswith(f"{url}/"))
