"""What a careful person reads from a reply is read, and nothing else is."""

from typing import Any

import pytest

from evaluations.domain import Choice, Shown
from evaluations.judge.reading import Read, Reply, read_reply
from tests.judge.replies import FORMS, READABLE, STEPS, UNREADABLE

# Of the replies that a person reads, so many are read at the least: the others cost too much precision.
LEAST_READ = 0.95
LABELS = {"SAME": Choice.TIE, "C": Choice.TIE, "tie": Choice.TIE, "A": Choice.A, "B": Choice.B, "bb": Choice.BOTH_BAD}


def read(form: str, reply: str) -> object:
    """The one choice or score of a reply; None where it is not read."""
    steps: dict[str, Any] = STEPS.get(form, {})
    told = read_reply(FORMS[form], Shown.AS_STORED, Reply(reply), **steps)
    if not isinstance(told, Read):
        return None
    values = {*told.choices.values(), *told.scores.values()}
    assert len(values) == 1
    return values.pop()


def right(written: str) -> object:
    return LABELS[written] if written in LABELS else float(written)


@pytest.mark.parametrize(("form", "reply"), UNREADABLE)
def test_a_reply_that_leaves_its_verdict_open_is_unreadable(form: str, reply: str) -> None:
    assert read(form, reply) is None


@pytest.mark.parametrize(("form", "reply", "wanted"), READABLE)
def test_no_reply_with_a_flaw_gives_a_wrong_verdict(form: str, reply: str, wanted: str) -> None:
    assert read(form, reply) in (None, right(wanted))


def test_nearly_all_replies_that_a_person_reads_are_read() -> None:
    unread = [(form, reply) for form, reply, _ in READABLE if read(form, reply) is None]
    share = 1 - len(unread) / len(READABLE)
    assert share >= LEAST_READ, unread
