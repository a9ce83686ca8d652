"""What a careful person reads from a reply is read, and nothing else is."""

from typing import Any

import pytest

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.replies.reply_parser import ParsedReply, RawReply, parse_reply
from tests.replies.reply_corpus import READABLE_REPLIES, REPLY_FORMS, REPLY_STEPS, UNREADABLE_REPLIES

# Of the replies that a person reads, so many are read at the least: the others cost too much precision.
LEAST_READ = 0.95
LABELS = {"SAME": Choice.TIE, "C": Choice.TIE, "tie": Choice.TIE, "A": Choice.A, "B": Choice.B, "bb": Choice.BOTH_BAD}


def read(form: str, reply: str) -> object:
    """The one choice or score of a reply; None where it is not read."""
    steps: dict[str, Any] = REPLY_STEPS.get(form, {})
    told = parse_reply(REPLY_FORMS[form], ShownOrder.AS_STORED, RawReply(reply), **steps)
    if not isinstance(told, ParsedReply):
        return None
    values = {*told.choices.values(), *told.scores.values()}
    assert len(values) == 1
    return values.pop()


def right(written: str) -> object:
    return LABELS[written] if written in LABELS else float(written)


@pytest.mark.parametrize(("form", "reply"), UNREADABLE_REPLIES)
def test_a_reply_that_leaves_its_verdict_open_is_unreadable(form: str, reply: str) -> None:
    assert read(form, reply) is None


@pytest.mark.parametrize(("form", "reply", "wanted"), READABLE_REPLIES)
def test_no_reply_with_a_flaw_gives_a_wrong_verdict(form: str, reply: str, wanted: str) -> None:
    assert read(form, reply) in (None, right(wanted))


def test_nearly_all_replies_that_a_person_reads_are_read() -> None:
    unread = [(form, reply) for form, reply, _ in READABLE_REPLIES if read(form, reply) is None]
    share = 1 - len(unread) / len(READABLE_REPLIES)
    assert share >= LEAST_READ, unread
