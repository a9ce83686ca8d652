"""Moments on pages."""

from datetime import UTC, datetime

from django.utils import timezone

from evaluations.templatetags.times import when

MOMENT = datetime(2026, 11, 27, 22, 5, 9, tzinfo=UTC)


def test_a_moment_is_shown_in_the_zone_of_the_reader_which_a_tooltip_names() -> None:
    with timezone.override("Asia/Tokyo"):
        html = when(MOMENT)
    assert html == (
        '<time datetime="2026-11-28T07:05:09+09:00" title="28 Nov 2026, 07:05:09 JST">28 Nov 2026, 07:05</time>'
    )


def test_a_layout_may_be_chosen() -> None:
    assert ">22:05:09<" in when(MOMENT, "H:i:s")


def test_no_moment_is_nothing() -> None:
    assert when(None) == ""
