"""How a worker connects to its broker again."""

import logging
import time

import amqp
import pytest

from judgeweb.consumer import LastingConsumer

REFUSED = amqp.exceptions.AccessRefused("Login was refused.\nSee the logfile.")


def test_a_refused_password_is_tried_again_every_few_seconds_and_logged_in_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    slept: list[float] = []
    now = 1000.0

    def sleep(seconds: float) -> None:
        nonlocal now
        slept.append(seconds)
        now += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: now)
    consumer = LastingConsumer.__new__(LastingConsumer)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            consumer.on_connection_error_before_connected(REFUSED)
    assert slept == [3.0, 3.0], "the first error may be a cut connection: it is tried again at once"
    assert caplog.messages == ["The broker takes no connection: AccessRefused: Login was refused. See the logfile."] * 3
    now += 60.0
    consumer.on_connection_error_before_connected(REFUSED)
    assert len(slept) == 2
