"""Turns that hold more than text: a bad row that names the turn and what it holds, in every format."""

import json
from typing import Any

import pytest

from evaluations.domain.files import ComparisonRow, FileEntry
from evaluations.formats.notices import ImportNotices
from tests.factories.imports import COMPARISON
from tests.formats.imported_rows import import_rows, read_contents, refusal_reason, rows_of_kind
from tests.formats.test_arena import BATTLE

ASKED = {"role": "user", "content": "Weather in Oslo?"}
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
SO_FAR = "only text can be imported so far"


def answer(**held: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "It rains.", **held}


TURNS: list[tuple[dict[str, Any], str]] = [
    (answer(content=None, tool_calls=[CALL]), "a tool call"),
    (answer(tool_calls=[CALL]), "a tool call"),  # the text beside it does not save the call
    (answer(content="", function_call={"name": "weather", "arguments": "{}"}), "a tool call"),
    (answer(toolCalls=[CALL]), "a tool call"),
    ({"role": "tool", "tool_call_id": "c1", "content": "11"}, "a tool result"),
    ({"role": "function", "name": "weather", "content": "11"}, "a tool result"),
    ({"from": "function_call", "value": "{}"}, "a tool call"),
    ({"from": "observation", "value": "11"}, "a tool result"),
    ({"role": "ipython", "content": "11"}, "a tool result"),
    ({"type": "function_call", "name": "weather", "arguments": "{}"}, "a tool call"),
    ({"type": "reasoning", "summary": []}, "reasoning"),
    (answer(content=[{"type": "tool_use", "id": "t", "name": "weather", "input": {}}]), "a tool call"),
    (answer(content=[{"type": "text", "text": "x"}, {"type": "tool_result", "content": "11"}]), "a tool result"),
    (answer(content=[{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]), "an image"),
    (answer(content=[{"type": "input_image", "image_url": "https://example.org/a.png"}]), "an image"),
    (answer(content=[{"type": "input_audio", "input_audio": {"data": "…"}}]), "audio"),
    (answer(content=[{"type": "video_url", "video_url": {"url": "…"}}]), "a video"),
    (answer(content=[{"type": "file", "file": {"file_id": "f"}}]), "a file"),
    (answer(content=[{"type": "document", "source": {}}]), "a file"),
    (answer(content=[{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "x"}]), "reasoning"),
    (answer(content=[{"type": "refusal", "refusal": "No."}]), "a refusal"),
    (answer(content=[{"type": "mcp_call"}]), "a part of the type “mcp_call”"),
    (answer(content=[{"type": "text", "text": "x", "image": "a.png"}]), "an image"),
    (answer(content=[{"type": "output_text", "text": "x", "annotations": [{"url": "…"}]}]), "citations"),
    (answer(content=[7]), "something that is not text"),
    (answer(content={"answer": "x"}), "something that is not text"),
    (answer(content=None, refusal="No."), "a refusal"),
    (answer(reasoning_content="Hm."), "reasoning"),
    (answer(audio={"id": "a"}), "audio"),
    (answer(additional_kwargs={"tool_calls": [CALL]}), "a tool call"),
    (answer(additional_kwargs={"reasoning_content": "Hm."}), "reasoning"),
    ({"type": "web_search_call", "id": "w"}, "a tool call"),
    (answer(content={"content_type": "code", "text": "weather()"}), "a part of the type “code”"),
    (answer(channel="analysis"), "reasoning"),
    (answer(recipient="functions.weather"), "a tool call"),
    ({"role": "model", "parts": [{"functionCall": {"name": "weather"}}]}, "a tool call"),
    ({"role": "model", "parts": [{"functionResponse": {"name": "weather"}}]}, "a tool result"),
    ({"role": "model", "parts": [{"inlineData": {"mimeType": "image/png", "data": "…"}}]}, "a file"),
    ({"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"text": "x"}]}, "reasoning"),
]
IDS = [json.dumps(turn, ensure_ascii=False)[:60] for turn, _ in TURNS]


@pytest.mark.parametrize(("turn", "what"), TURNS, ids=IDS)
def test_a_turn_that_holds_more_than_text_is_a_bad_row_by_name(turn: dict[str, Any], what: str) -> None:
    preference = {"prompt": [ASKED], "chosen": [turn], "rejected": [answer()]}
    assert refusal_reason(preference) == f"chosen, turn 1 holds {what}: {SO_FAR}"


def formats(turn: dict[str, Any]) -> dict[str, tuple[dict[str, Any], str]]:
    """Records of every format that may hold turns, with what the reason begins with."""
    said = [answer(), turn]
    without_query = {key: value for key, value in COMPARISON.items() if key != "query"}
    return {
        "response": ({**COMPARISON, "response_b": said}, "response_b, turn 2"),
        "query": ({**without_query, "messages": [ASKED, *said, ASKED]}, "messages, turn 3"),
        "one response": (
            {"query_id": "q", "query": "Why?", "candidate": "alpha", "response": said},
            "response, turn 2",
        ),
        "prompt": ({"prompt": [ASKED, *said, ASKED], "chosen": "x", "rejected": "y"}, "prompt, turn 3"),
        "rejected": (
            {"chosen": [ASKED, answer(content="No.")], "rejected": [ASKED, *said]},
            "rejected, turn 3",
        ),
        "one turn": ({"conversations": [ASKED], "chosen": turn, "rejected": answer()}, "chosen"),
        "arena": ({**BATTLE, "conversation_a": [ASKED, *said], "conversation_b": [ASKED, answer()]}, "conversation_a"),
        "auto-arena": (
            {"prompt": "Why?", "response_a": said, "response_b": "x", "history": []},
            "response_a, turn 2",
        ),
        "alpaca-eval": (
            {"instruction": "Why?", "output_1": "x", "output_2": said, "preference": 1},
            "output_2, turn 2",
        ),
        "label-studio": (
            {"data": {"prompt": "Why?", "answer1": said, "answer2": "x"}, "annotations": []},
            "answer1, turn 2",
        ),
        "a dialogue in Label Studio": (
            {"data": {"chat": [ASKED, *said], "answer1": "x", "answer2": "y"}, "annotations": []},
            "chat, turn 3",
        ),
        "argilla": (
            {"fields": {"prompt": [ASKED, *said], "response1": "x", "response2": "y"}, "responses": []},
            "prompt, turn 3",
        ),
    }


@pytest.mark.parametrize("name", list(formats({})))
def test_every_format_refuses_turns_with_more_than_text(name: str) -> None:
    record, where = formats(answer(content=None, tool_calls=[CALL]))[name]
    assert refusal_reason(record).startswith(where)
    assert refusal_reason(record).endswith(f"holds a tool call: {SO_FAR}")


@pytest.mark.parametrize(
    ("column", "value", "what"),
    [
        ("images", ["a.png"], "an image"),
        ("images", '["a.png"]', "an image"),
        ("image", {"bytes": None, "path": "a.png"}, "an image"),
        ("image", "https://example.org/a.png", "an image"),
        ("image_path", "coco/a.jpg", "an image"),
        ("img", "data:image/png;base64,iVBO", "an image"),
        ("video_url", "https://example.org/a.mp4", "a video"),
        ("videos", ["a.mp4"], "a video"),
        ("audios", ["a.wav"], "audio"),
        ("tools", '[{"name": "weather"}]', "tools"),
        ("tools", [{"name": "weather"}], "tools"),
        ("tool_calls", [CALL], "a tool call"),
    ],
)
def test_media_and_tools_beside_the_texts_make_a_bad_row(column: str, value: object, what: str) -> None:
    for record in ({"prompt": "Why?", "chosen": "x", "rejected": "y"}, COMPARISON):
        assert refusal_reason({**record, column: value}) == f"{column} holds {what}: {SO_FAR}"
    task = {"data": {"prompt": "Why?", "answer1": "x", "answer2": "y", column: value}, "annotations": []}
    assert refusal_reason(task) == f"{column} holds {what}: {SO_FAR}"


@pytest.mark.parametrize(
    ("column", "value"), [("tools", []), ("tools", "[]"), ("tools", "hammer"), ("images", None), ("image", "yes")]
)
def test_columns_of_media_that_hold_none_are_metadata(column: str, value: object) -> None:
    (row,) = rows_of_kind(ComparisonRow, import_rows({**COMPARISON, column: value}))
    assert row.metadata == {column: value}


@pytest.mark.parametrize(
    "turn",
    [
        answer(tool_calls=[], function_call=None, refusal=None, audio=None, annotations=[]),
        {"role": "assistant", "content": [{"type": "text", "text": "It rains.", "image": None}]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "It rains.", "annotations": []}]},
        {"role": "assistant", "content": [{"type": "text", "text": {"value": "It rains.", "annotations": []}}]},
        {"role": "model", "parts": [{"text": "It rains."}]},
        {"role": "assistant", "parts": [{"type": "text", "content": "It rains."}]},
        {"role": "assistant", "content": "", "parts": [{"type": "text", "text": "It rains."}]},
        {"from": "gpt", "value": "It rains.", "weight": 1},
        {"role": "model", "parts": [{"text": "It rains.", "thoughtSignature": "CpcB"}]},
        {"author": {"role": "assistant"}, "content": {"content_type": "text", "text": "It rains."}},
    ],
)
def test_what_is_empty_beside_a_text_or_only_dresses_it_is_no_harm(turn: dict[str, Any]) -> None:
    (row,) = rows_of_kind(
        ComparisonRow, import_rows({"prompt": [ASKED], "chosen": [turn], "rejected": [answer(content="")]})
    )
    assert {row.response_a[0]["content"], row.response_b[0]["content"]} == {"It rains.", ""}


def test_a_turn_without_a_text_is_no_empty_text() -> None:
    for turn in ({"role": "assistant", "content": None}, {"role": "assistant"}, {"role": "assistant", "content": []}):
        because = refusal_reason({"prompt": [ASKED], "chosen": [turn], "rejected": [answer()]})
        assert because == 'chosen, turn 1 has no text. Write an empty one as ""'


def test_a_conversation_without_an_answer_has_no_empty_response() -> None:
    because = refusal_reason({**BATTLE, "conversation_b": BATTLE["conversation_b"][:1], "turn": 1})
    assert (
        because == 'conversation_b has no response after the question. Write an empty one as a turn with the content ""'
    )


def test_a_turn_of_the_user_is_no_response() -> None:
    for prompt, chosen in (("Why?", ASKED), ([ASKED], [ASKED, ASKED])):
        because = refusal_reason({"prompt": prompt, "chosen": chosen, "rejected": answer()})
        assert because == "chosen has only user turns. The answer is missing"
    assert refusal_reason({**COMPARISON, "response_a": [ASKED]}).startswith("response_a has only user turns")


def test_what_turns_hold_beside_their_texts_is_named() -> None:
    turn = answer(content="It rains.", name="weather bot", steps=["look", "say"], weight=1)
    found = ImportNotices()
    for entry in read_contents([{"prompt": [ASKED], "chosen": [turn], "rejected": [answer(content="")]}]).entries:
        assert isinstance(entry, FileEntry)
        found.count(entry.rows, entry.notices)
    assert found.sentences() == [
        "Not imported: “name” of turns in “chosen” (1); “steps” of turns in “chosen” (1) (line 1)."
    ]


def test_two_responses_that_are_files_are_refused_and_one_link_is_a_text() -> None:
    task = {"data": {"prompt": "Which?", "answer1": "s3://voices/1.wav", "answer2": "s3://voices/2.wav"}}
    assert refusal_reason({**task, "annotations": []}) == f"answer1 and answer2 hold addresses of files: {SO_FAR}"
    told = {"prompt": "Which?", "answer1": "https://example.org/1.png", "answer2": "None."}
    (row,) = rows_of_kind(ComparisonRow, import_rows({"data": told, "annotations": []}))
    assert row.response_a == [answer(content="https://example.org/1.png")]


def test_a_turn_with_two_texts_is_refused() -> None:
    turn = {"role": "assistant", "content": "It rains.", "parts": [{"text": "It snows."}]}
    because = refusal_reason({"prompt": [ASKED], "chosen": [turn], "rejected": [answer()]})
    assert because == "chosen, turn 1 has two texts, in content and in parts. Give one of them"
