import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluations.domain.judges import CallState
from evaluations.llm.batch_client import (
    BatchLine,
    BatchServer,
    build_batch_line,
    connect_batches,
    parse_batch_line,
    parse_line_answer,
)
from evaluations.llm.exchange import RecordOnCall, Request, Retry, Server, StopRun
from tests.helpers.llm_server import LLMServer, llm_server

REQUEST = Request([{"role": "user", "content": "Which?"}], "test-model")


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with llm_server() as running:
        yield running


@pytest.fixture
def batches(server: LLMServer) -> Iterator[BatchServer]:
    with connect_batches(Server(server.base_url)) as asked:
        yield asked


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(build_batch_line("call-1", REQUEST) + build_batch_line("call-2", REQUEST))
    return path


def test_a_file_is_sent_and_its_answers_come_back(server: LLMServer, batches: BatchServer, file: Path) -> None:
    sent = batches.send(file, "mark-1")
    assert not batches.retrieve(sent.id).has_ended
    server.batches.work()
    ended = batches.retrieve(sent.id)
    assert (ended.has_ended, ended.answered, ended.error_file) == (True, 2, "")
    lines = list(batches.lines(ended.output_file))
    assert [line.custom_id for line in lines] == ["call-1", "call-2"]
    answer = parse_line_answer(lines[0], Server(server.base_url), REQUEST)
    assert (answer.finish_reason, json.loads(answer.text)["choices"]["safety"]) == ("stop", "A")


def test_a_batch_is_found_again_by_its_mark(server: LLMServer, batches: BatchServer, file: Path) -> None:
    batches.send(file, "other")
    sent = batches.send(file, "mine")
    assert batches.find("mine") == sent
    assert batches.find("nobody's") is None


def test_a_refused_file_says_why(server: LLMServer, batches: BatchServer, file: Path) -> None:
    sent = batches.send(file, "mark")
    server.batches.refuse("Line 1 has no model.", "Line 2 neither.")
    refused = batches.retrieve(sent.id)
    assert (refused.state, refused.error) == ("failed", "Line 1 has no model. Line 2 neither.")


def test_a_server_without_the_batch_api_stops_the_run(batches: BatchServer) -> None:
    with pytest.raises(StopRun, match="has no Batch API, or knows this batch no more"):
        batches.retrieve("batch-999")


def test_a_line_has_the_errors_that_its_request_would_have_had() -> None:
    server = Server("http://127.0.0.1:1/v1")
    too_long = {"error": {"message": "maximum context length is 8 tokens", "code": "context_length_exceeded"}}
    with pytest.raises(RecordOnCall) as caught:
        parse_line_answer(BatchLine("call-1", 400, too_long, ""), server, REQUEST)
    assert caught.value.state == CallState.TOO_LONG
    with pytest.raises(Retry, match="The server answered 500"):
        parse_line_answer(BatchLine("call-1", 500, {"error": {"message": "sorry"}}, ""), server, REQUEST)
    with pytest.raises(Retry, match=r"ended before this was asked \(batch_expired\)"):
        parse_line_answer(BatchLine("call-1", None, None, "batch_expired"), server, REQUEST)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"custom_id": 3}', "[" * 100_000])
def test_what_is_no_line_is_left_out(text: str) -> None:
    assert parse_batch_line(text) is None
