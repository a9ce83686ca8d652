"""The broker of the default set-up: files in a folder, read by one process while another writes."""

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from kombu import Connection

from judgeweb.broker import Channel, tidy_folder


@pytest.fixture
def channel(tmp_path: Path) -> Iterator[Channel]:
    with connection(tmp_path) as connected:
        yield connected.channel()


def connection(folder: Path) -> Any:
    options = {
        "data_folder_in": str(folder),
        "data_folder_out": str(folder),
        "control_folder": str(folder / "control"),
    }
    return Connection("filesystem://localhost", transport="judgeweb.broker:Transport", transport_options=options)


def all_of(channel: Channel, queue: str = "celery") -> list[Any]:
    found = []
    while True:
        try:
            found.append(channel._get(queue))
        except Empty:
            return found


def test_messages_come_out_once_and_in_order(channel: Channel) -> None:
    for number in range(3):
        channel._put("celery", {"number": number})
        threading.Event().wait(0.002)  # the order is by milliseconds
    channel._put("other", {"number": 9})
    assert [message["number"] for message in all_of(channel)] == [0, 1, 2]
    assert [message["number"] for message in all_of(channel, "other")] == [9]


def test_a_message_has_its_name_only_once_it_is_whole(
    channel: Channel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[list[Any], bytes]] = []
    replace = os.replace

    def replace_after_a_look(source: Path, target: Path) -> None:
        seen.append((all_of(channel), Path(source).read_bytes()))
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_after_a_look)
    channel._put("celery", {"number": 1})
    assert seen == [([], b'{"number": 1}')]
    assert all_of(channel) == [{"number": 1}]


def test_a_message_that_does_not_fit_on_the_disk_leaves_no_file(
    channel: Channel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, text: str) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(OSError, match="No space left"):
        channel._put("celery", {"number": 1})
    assert [path for path in tmp_path.iterdir() if path.is_file()] == []


def test_what_killed_processes_left_is_removed_or_put_back_after_an_hour(
    channel: Channel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "control").mkdir(exist_ok=True)
    for folder in (tmp_path, tmp_path / "control"):
        (folder / "1_cut.celery.msg.x.unfinished").write_text('{"half')
    (tmp_path / "1_taken.celery.msg.taken").write_text('{"number": 1}')
    tidy_folder(tmp_path)
    assert len(list(tmp_path.rglob("*.unfinished"))) == 2
    assert all_of(channel) == []
    monkeypatch.setattr("judgeweb.broker.ABANDONED_AFTER_SECONDS", -1.0)
    tidy_folder(tmp_path)
    assert list(tmp_path.rglob("*.unfinished")) == []
    assert all_of(channel) == [{"number": 1}]


@pytest.mark.parametrize("content", ["", '{"half'])
def test_a_message_that_was_cut_off_is_left_out_and_said(
    channel: Channel, tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    (tmp_path / "1_cut.celery.msg").write_text(content)
    channel._put("celery", {"number": 1})
    assert all_of(channel) == [{"number": 1}]
    assert "cannot be read and is left out" in caplog.text


@pytest.mark.parametrize("content", ["", '[["", '])
def test_a_table_of_queues_that_was_cut_off_is_made_again(channel: Channel, tmp_path: Path, content: str) -> None:
    (tmp_path / "control").mkdir(exist_ok=True)
    (tmp_path / "control" / "celery.exchange").write_text(content)
    channel._queue_bind("celery", "celery", "", "celery")
    channel._queue_bind("celery", "celery", "", "celery")
    channel._queue_bind("celery", "other", "", "other")
    assert [tuple(row) for row in channel.get_table("celery")] == [("other", "", "other"), ("celery", "", "celery")]


def test_nothing_is_lost_or_halved_between_writers_and_readers(tmp_path: Path) -> None:
    """Kombu's own transport ends a worker here."""
    most = 400
    found: list[int] = []
    done = threading.Event()

    def write(numbers: range) -> None:
        with connection(tmp_path) as connected:
            channel = connected.channel()
            for number in numbers:
                channel._put("celery", {"number": number})

    def read() -> None:
        with connection(tmp_path) as connected:
            channel = connected.channel()
            while not done.is_set():
                found.extend(message["number"] for message in all_of(channel))
            found.extend(message["number"] for message in all_of(channel))

    writers = [threading.Thread(target=write, args=(range(part, most, 2),)) for part in range(2)]
    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in (*readers, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert sorted(found) == list(range(most))
