"""Notices with an Undo button."""

from django.contrib.messages.storage.base import Message
from django.template.loader import render_to_string
from django.test import RequestFactory

from evaluations.templatetags.notices import UndoAction, undo_action
from evaluations.web.notices import add_notice_with_undo


class Storage(list[Message]):
    def add(self, level: int, message: str, extra_tags: str = "") -> None:
        self.append(Message(level, message, extra_tags))


def make_message(**fields: str) -> Message:
    request = RequestFactory().get("/")
    request._messages = Storage()  # type: ignore[attr-defined]
    add_notice_with_undo(request, "Imported 60 comparisons.", "/e/study/data/imports/3/undo", fields)
    (message,) = request._messages  # type: ignore[attr-defined]
    return message  # type: ignore[no-any-return]


def test_a_notice_carries_where_its_undo_button_posts_to() -> None:
    action = undo_action(make_message(version='2"').extra_tags)
    assert action == UndoAction("/e/study/data/imports/3/undo", {"version": '2"'})


def test_the_button_sends_the_fields() -> None:
    html = render_to_string("_notice.html", {"message": make_message(version='2"')})
    assert 'action="/e/study/data/imports/3/undo"' in html
    assert '<input type="hidden" name="version" value="2&quot;">' in html


def test_other_messages_have_no_button() -> None:
    assert undo_action("") is None
    assert "<form" not in render_to_string("_notice.html", {"message": Message(25, "Saved.")})
