"""Chat messages of any layout as texts; a turn with more than text is refused."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluations.domain.texts import Message, Messages
from evaluations.formats.values import RowRefused, Values, parse_structured_value, required_text, value_as_text

ROLES: Final = frozenset({"system", "developer", "user", "assistant"})
ROLE_OF: Final = {"human": "user", "gpt": "assistant", "bot": "assistant", "chatbot": "assistant", "model": "assistant"}
# Keys of a turn's role and text in all known formats.
ROLE_KEYS: Final = ("role", "from", "author", "speaker")
TEXT_KEYS: Final = ("content", "value", "parts", "text")
KNOWN_KEYS: Final = frozenset({*ROLE_KEYS, *TEXT_KEYS})
TEXT_PARTS: Final = (None, "text", "input_text", "output_text")
ONLY_TEXT: Final = "only text can be imported so far"
WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
# What a key, a role or the type of a part means, by the beginning of one of its words.
HELD: Final = (
    (("tool", "function", "observation", "ipython"), "a tool call"),
    (("image", "img", "picture", "photo"), "an image"),
    (("audio", "speech"), "audio"),
    (("video",), "a video"),
    (("file", "document", "attachment", "media", "inline", "blob"), "a file"),
    (("reason", "think", "thought", "redacted"), "reasoning"),
    (("refus",), "a refusal"),
    (("citation", "annotation", "grounding"), "citations"),
    (("executable", "execution"), "code that was run"),
)
RESULTS: Final = frozenset({"result", "results", "response", "output", "id", "observation", "ipython"})
DECLARED: Final = frozenset({"tools", "functions"})
RESULT_ROLES: Final = frozenset({"tool", "function"})
# Built-in tools, such as a search, a computer or a server of tools, have special types of items.
CALL: Final = "_call"
# Kinds that some programs nest one level below a turn of a model.
WITHIN: Final = ("a tool call", "a tool result", "reasoning")
# Columns of turns in all known formats.
TURNS: Final = frozenset(
    {"messages", "conversations", "conversation", "conversation_a", "conversation_b", "chat", "prompt", "completion"}
    | {"chosen", "rejected", "preferred_output", "non_preferred_output", "output", "output_1", "output_2"}
    | {"response", "response_a", "response_b", "response_A", "response_B", "question", "instruction", "input"}
)
# Columns with media or tools of a question or an answer, which its text does not contain.
MEDIA_COLUMNS: Final = frozenset(
    {
        f"{medium}{ending}"
        for medium in ("image", "img", "picture", "photo", "audio", "video")
        for ending in ("", "s", "_url", "_urls", "_path", "_paths", "_file", "_files")
    }
    | {"tools", "functions", "tool_calls", "function_call"}
)
ENDINGS: Final = r"\S+\.(?:png|jpe?g|gif|webp|bmp|tiff?|svg|pdf|mp3|wav|ogg|flac|m4a|mp4|webm|mov|avi)"
ADDRESS: Final = re.compile(rf"(?:https?|s3|gs|file)://\S+|data:\S+|{ENDINGS}", re.IGNORECASE)
MEDIA: Final = re.compile(rf"data:(?:image|audio|video)/\S+|{ENDINGS}(?:\?\S*)?", re.IGNORECASE)


def non_text_kind(name: str) -> str | None:
    """The kind of non-text content that a key, role or part name indicates, or None."""
    if name in DECLARED:
        return "tools"
    words = [word.lower() for word in WORDS.findall(name)]
    if "signature" in words:  # of reasoning that is not there
        return None
    kind = next((what for starts, what in HELD if any(word.startswith(starts) for word in words)), None)
    is_result = kind == "a tool call" and not RESULTS.isdisjoint(words)
    return "a tool result" if is_result else kind


def holds_nothing(value: object) -> bool:
    """Whether a value is empty, or a number or boolean that only describes a text."""
    return isinstance(value, (bool, int, float)) or not value


def non_text_refusal(where: str, what: str, holds: str = "holds") -> RowRefused:
    return RowRefused(f"{where} {holds} {what}: {ONLY_TEXT}")


def refuse_more_than_text(turn: Mapping[str, Any], where: str) -> None:
    if turn.get("thought") is True:  # reasoning of a Gemini model
        raise non_text_refusal(where, "reasoning")
    for key, value in turn.items():
        if key in TEXT_KEYS or holds_nothing(value):
            continue
        if what := non_text_kind(key):
            raise non_text_refusal(where, what)
        for inner in value if isinstance(value, dict) else ():
            if (what := non_text_kind(str(inner))) in WITHIN and not holds_nothing(value[inner]):
                raise non_text_refusal(where, what)


def is_media_response(response: Messages) -> bool:
    """Whether a response is only the address of an image or of another file that is not text."""
    return len(response) == 1 and MEDIA.fullmatch(response[0]["content"].strip()) is not None


def ignored_in_turns(values: Values) -> Iterator[str]:
    """The parts of turns other than roles and texts, which are not kept."""
    for column in TURNS.intersection(values):
        cell = values[column]
        for turn in cell if isinstance(cell, list) else (cell,):
            if isinstance(turn, dict) and len(turn) > 2:
                others = (key for key, value in turn.items() if key not in KNOWN_KEYS and not holds_nothing(value))
                yield from (f"“{key}” of turns in “{column}”" for key in others)


def refuse_media_columns(values: Values) -> None:
    """Refuse rows with images, tools and the like: a judge that reads only the texts judges something else."""
    if MEDIA_COLUMNS.isdisjoint(values):
        return
    for column in sorted(MEDIA_COLUMNS.intersection(values)):
        if holds_media(values[column]):
            raise non_text_refusal(column, non_text_kind(column) or "something that is not text")


def holds_media(value: object) -> bool:
    """Whether a value is a non-empty list or object, also as JSON in a cell, or the address of a file."""
    if isinstance(value, str):
        text = value.strip()
        return (text.startswith(("[", "{")) and len(text) > 2) or ADDRESS.fullmatch(text) is not None
    if isinstance(value, list):
        return any(not holds_nothing(item) for item in value)
    return not holds_nothing(value)


def parse_optional_messages(value: object, field: str, *, strict: bool = False) -> Messages:
    """A list of turns. ``strict``: a turn with anything but its role and text is refused."""
    if not isinstance(value, list) or not value:
        raise RowRefused(f"{field} must be a list of chat messages")
    return [parse_message(turn, f"{field}, turn {number}", strict=strict) for number, turn in enumerate(value, 1)]


def parse_message(turn: object, where: str, *, strict: bool = False) -> Message:
    """A turn of any layout: role and content, from and value, role and parts."""
    if not isinstance(turn, dict):
        raise RowRefused(f"{where} must have a role and a content")
    role = turn.get("role")
    if len(turn) == 2 and type(turn.get("content")) is str and role in ROLES:  # as almost all are
        return {"role": role, "content": turn["content"]}
    role = message_role(turn, where)
    refuse_more_than_text(turn, where)
    refuse_other_channel(turn, where)
    if strict and (
        others := [key for key in turn if key not in (*ROLE_KEYS, *TEXT_KEYS) and not holds_nothing(turn[key])]
    ):
        raise RowRefused(f"{where} must have a role and a content and nothing else, not “{others[0][:40]}”")
    return {"role": role, "content": text_of_turn(turn, where)}


def message_role(turn: Mapping[str, Any], where: str) -> str:
    speaker = next((turn[key] for key in ROLE_KEYS if turn.get(key)), None)
    if isinstance(speaker, dict):  # an author with a role and a name
        speaker = speaker.get("role")
    role = str(speaker or "").strip().lower()
    role = ROLE_OF.get(role, role)
    if role in ROLES:
        return role
    if role in RESULT_ROLES:
        raise non_text_refusal(
            where, "a tool call" if turn.get("function_call") or turn.get("tool_calls") else "a tool result"
        )
    kind = str(turn.get("type", ""))
    if what := non_text_kind(role or kind) or ("a tool call" if kind.endswith(CALL) else None):
        raise non_text_refusal(where, what)
    if not role:
        raise RowRefused(f"{where} must have a role and a content")
    raise RowRefused(f"{where} has the unknown role “{role[:40]}”")


def refuse_other_channel(turn: Mapping[str, Any], where: str) -> None:
    """Refuse turns that a model addresses to itself or to a tool in OpenAI's Harmony format."""
    if turn.get("channel") in ("analysis", "commentary"):
        raise non_text_refusal(where, "reasoning")
    if turn.get("recipient") not in (None, "", "all", "user"):
        raise non_text_refusal(where, "a tool call")


def text_of_turn(turn: Mapping[str, Any], where: str) -> str:
    """The text of a turn; two different texts are refused."""
    text_by_key = {key: text_of_content(turn[key], where) for key in TEXT_KEYS if turn.get(key) not in (None, [])}
    if not text_by_key:
        raise RowRefused(f'{where} has no text. Write an empty one as ""')
    texts = {text for text in text_by_key.values() if text}
    if len(texts) > 1:
        raise RowRefused(f"{where} has two texts, in {' and in '.join(text_by_key)}. Give one of them")
    return texts.pop() if texts else ""


def text_of_content(content: object, where: str) -> str:
    """The text of a turn: a string, or a list of text parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n\n".join(text_of_part(part, where) for part in content)
    if isinstance(content, dict):
        return text_of_part(content, where)
    if content is None:
        raise RowRefused(f'{where} has no text. Write an empty one as ""')
    return value_as_text(content, where)


def text_of_part(part: object, where: str) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise non_text_refusal(where, "something that is not text")
    kind = part.get("type", part.get("content_type"))
    if kind not in TEXT_PARTS:
        raise non_text_refusal(where, non_text_kind(str(kind)) or f"a part of the type “{str(kind)[:40]}”")
    refuse_more_than_text(part, where)
    text = next((part[key] for key in ("text", "content", "value") if part.get(key) is not None), None)
    if isinstance(text, dict):
        return text_of_part(text, where)
    if not isinstance(text, str):
        raise non_text_refusal(where, "something that is not text")
    return text


def parse_conversation(values: Values) -> Messages:
    """The conversation to answer: chat messages in ``messages`` or ``query``, or ``query`` as one turn of the user."""
    turns = parse_structured_value(values.get("messages"), "messages")
    query = values.get("query")
    if turns is not None and query not in (None, ""):
        raise RowRefused("has both query and messages. Give one of them")
    if turns is not None:
        return parse_asked_messages(turns, "messages")
    if isinstance(query, list):
        return parse_asked_messages(query, "query")
    return [{"role": "user", "content": required_text(values, "query")}]


def parse_asked_messages(turns: object, field: str) -> Messages:
    messages = parse_optional_messages(turns, field, strict=True)
    if messages[-1]["role"] != "user":
        raise RowRefused(f"{field} must end with a user turn")
    return messages


def parse_response(values: Values, field: str, *, strict: bool = False) -> Messages:
    """A response: text, or chat messages. "" is an empty response; absent is refused."""
    value = values.get(field)
    if isinstance(value, str):
        return [{"role": "assistant", "content": value}]
    if value is None:
        raise RowRefused(f'{field} is missing. Write an empty response as ""')
    if isinstance(value, list):
        return require_answer(parse_optional_messages(value, field, strict=strict), field)
    if isinstance(value, dict) and any(key in value for key in ROLE_KEYS):
        return require_answer([parse_message(value, field, strict=strict)], field)
    return [{"role": "assistant", "content": value_as_text(value, field)}]


def require_answer(messages: Messages, where: str) -> Messages:
    """The messages; refused where none of them is an answer."""
    if all(turn["role"] == "user" for turn in messages):
        raise RowRefused(f"{where} has only user turns. The answer is missing")
    return messages
