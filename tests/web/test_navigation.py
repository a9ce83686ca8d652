"""The places of an evaluation in the header of its pages."""

import pytest

from evaluations.access import ALLOWED_ROLES
from evaluations.domain.roles import Role
from evaluations.web.navigation import Navigation, build_navigation


def navigation(path: str, role: Role = Role.OWNER) -> Navigation:
    return build_navigation(
        "study", path, {action.name.lower(): role in roles for action, roles in ALLOWED_ROLES.items()}
    )


def test_an_owner_has_six_places_and_the_settings() -> None:
    places = navigation("/e/study/")
    assert [place.label for place in places.places] == ["Overview", "Data", "Judges", "Review", "Results", "Export"]
    assert places.settings
    assert [tab.label for tab in places.settings.tabs] == [
        "General",
        "Members",
        "Guidelines",
        "Decisions",
        "Webhooks",
        "Activity",
        "Archive and delete",
    ]


def test_a_reviewer_finds_only_what_they_may_open() -> None:
    places = navigation("/e/study/", Role.REVIEWER)
    assert [place.label for place in places.places] == ["Overview", "Data", "Judges", "Review", "Results"]
    assert [place.url for place in places.places][1] == "/e/study/data/comparisons"
    assert places.settings
    assert [tab.label for tab in places.settings.tabs] == ["Members", "Guidelines"]


@pytest.mark.parametrize(
    ("path", "place", "tab"),
    [
        ("/e/study/", "Overview", "Overview"),
        ("/e/study/data", "Data", "Files"),
        ("/e/study/data/imports/3", "Data", "Files"),
        ("/e/study/data/comparisons/7", "Data", "Comparisons"),
        ("/e/study/judges/runs/7", "Judges", "Runs"),
        ("/e/study/judges/7", "Judges", "Judges"),
        ("/e/study/review/7", "Review", "Review"),
        ("/e/study/review/disagreements/7", "Review", "Resolve"),
        ("/e/study/results/wins", "Results", "Results"),
        ("/e/study/export/3", "Export", "Export"),
        ("/e/study/settings/members/invite", "Settings", "Members"),
    ],
)
def test_a_page_marks_its_place_and_its_tab(path: str, place: str, tab: str) -> None:
    current = navigation(path).current
    assert current
    assert current.label == place
    assert [one.label for one in current.tabs if one.is_current] == [tab]


def test_only_one_place_is_marked() -> None:
    places = navigation("/e/study/data/comparisons").everything
    assert [place.label for place in places if place.is_current] == ["Data"]
