"""The two responses and the question among the fields of an annotation project."""

import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from evaluations.domain.choices import FLIPPED_CHOICES, Choice
from evaluations.domain.files import ComparisonRow, FileRow, Notice, NoticeKind, ReadOptions, VerdictRow
from evaluations.domain.texts import Messages
from evaluations.formats.chat_messages import is_media_response, non_text_refusal, parse_response, refuse_media_columns
from evaluations.formats.conversations import first_candidate_name, make_query, parse_turns, user_turn
from evaluations.formats.label_parser import ParsedLabel, fold_name, is_other_name, note_with_strength, parse_label
from evaluations.formats.native_rows import DEFAULT_ASPECT
from evaluations.formats.values import MAX_ASPECT, RowRefused, optional_text, value_as_text

QUESTIONS: Final = (
    "query",
    "prompt",
    "question",
    "instruction",
    "messages",
    "conversation",
    "chat",
    "input",
    "user",
    "context",
)
ENDINGS: Final = (("1", "2"), ("a", "b"), ("left", "right"), ("first", "second"))
# Beginnings of such field names; last come names that are an ending alone.
STEMS: Final = (
    *("response", "answer", "output", "completion", "generation", "text", "txt", "summary", "reply", "option"),
    *("model", "candidate", "assistant", "item", "modelresponse", "modeloutput", "modelanswer", ""),
)
NAMES: Final = (
    *(("candidate_a", "candidate_b"), ("model_a", "model_b"), ("model_1", "model_2"), ("model1", "model2")),
    *(("generator_1", "generator_2"), ("generator_a", "generator_b"), ("model_name_1", "model_name_2")),
)
OF_PAIR: Final = frozenset({"query_id", "reference", "category", *(name for two in NAMES for name in two)})
NOT_LETTERS: Final = re.compile(r"[\W_]+")
NOT_IN_A_KEY: Final = re.compile(r"[^a-z0-9]+")
# A question with one of these names is the one question about the pair.
OVERALL: Final = frozenset(
    {"pw", "pairwise", "comparison", "preference", "preferred", "choice", "label", "winner", "better", "ranking"}
    | {"rank", "best", "overall", "which", "result"}
)


@dataclass(frozen=True)
class AnnotatedPair:
    """A comparison, and the ``fields`` of an annotation task that hold its two responses.

    ``sides``: the names by which an annotation may mean either response. ``other_fields``: all fields that are not
    used.
    """

    row: ComparisonRow
    fields: tuple[str, str]
    sides: tuple[tuple[str, ...], tuple[str, ...]]
    other_fields: Mapping[str, Any]

    def material_rows(self) -> Iterator[FileRow]:
        """The comparison with the other fields as its metadata; a third response is not compared."""
        further = further_responses(self)
        metadata = {field: value for field, value in self.other_fields.items() if field not in further}
        yield replace(self.row, metadata=metadata) if metadata else self.row
        for field in further:
            yield self.notice(NoticeKind.NOT_STORED, f"a further response, “{field}”")

    def label(self, word: str, options: ReadOptions) -> ParsedLabel | None:
        """The meaning of a label: as set for the whole file, else by its words; None where it is not understood."""
        choice = options.choices.get(word.strip().lower())
        if choice not in tuple(Choice):
            return parse_label(word, *self.sides)
        return None if is_other_name(word, choice, *self.sides) else ParsedLabel(Choice(choice))

    def answer(
        self, question: str, word: str, label: ParsedLabel | None, *, is_turned: bool = False, **columns: Any
    ) -> Iterator[FileRow]:
        """The verdict of an answer to a question, or a notice that the answer is not understood."""
        if label is None:
            yield self.notice(NoticeKind.NOT_UNDERSTOOD, word, question)
            return
        aspect = aspect_from_question(question)
        choice = FLIPPED_CHOICES[label.choice] if is_turned and label.by_place else label.choice
        yield self.verdict(aspect=aspect, choice=choice, note=note_with_strength("", label.strength), **columns)
        yield from self.rename_notices(question, aspect)

    def rename_notices(self, question: str, aspect: str) -> Iterator[Notice]:
        if not question.isascii() or len(question) > MAX_ASPECT:
            yield self.notice(NoticeKind.RENAMED, question, aspect)

    def notice(self, kind: NoticeKind, what: str, where: str = "") -> Notice:
        return Notice(self.row.line, kind, what, where)

    def verdict(self, **columns: Any) -> VerdictRow:
        return VerdictRow(
            line=self.row.line,
            query_key=self.row.query.key,
            candidate_a=self.row.candidate_a,
            candidate_b=self.row.candidate_b,
            **columns,
        )


def find_annotated_pair(fields: Mapping[str, Any], options: ReadOptions, line: int, key: str) -> AnnotatedPair:
    """The comparison in these fields, with candidates named by the fields or after them."""
    named = {options.mapping.get(field, field): value for field, value in fields.items()}
    refuse_media_columns(named)
    sides = find_response_fields(named)
    names = find_annotated_names(named, sides)
    question_field = find_question_field(named)
    row = ComparisonRow(
        line=line,
        query=make_query(
            read_annotated_question(named, question_field),
            options,
            key=first_candidate_name(named, "query_id") or key,
            reference=optional_text(named, "reference"),
            category=optional_text(named, "category"),
        ),
        candidate_a=names[0],
        response_a=read_annotated_side(named, sides[0]),
        candidate_b=names[1],
        response_b=read_annotated_side(named, sides[1]),
    )
    if is_media_response(row.response_a) and is_media_response(row.response_b):
        raise non_text_refusal(f"{sides[0]} and {sides[1]}", "addresses of files", "hold")
    used, column_of_field = (
        {*sides, question_field, *OF_PAIR},
        {field: column for column, field in options.mapping.items()},
    )
    return AnnotatedPair(
        row,
        sides,
        (
            (sides[0], column_of_field.get(sides[0], sides[0]), names[0]),
            (sides[1], column_of_field.get(sides[1], sides[1]), names[1]),
        ),
        {field: value for field, value in named.items() if field not in used and value not in (None, "", [], {})},
    )


def further_responses(pair: AnnotatedPair) -> list[str]:
    """Fields named like a third or fourth response; only the first two responses are compared."""
    first = bare_field_name(pair.fields[0])
    stem = next(
        first.removesuffix(ending) for ending in (*(ending for ending, _ in ENDINGS), "") if first.endswith(ending)
    )
    pattern = re.compile(re.escape(stem) + r"(?:\d|[c-z]|third|fourth)")
    return [field for field in pair.other_fields if pattern.fullmatch(bare_field_name(field))]


def bare_field_name(field: str) -> str:
    return NOT_LETTERS.sub("", field.lower())


def read_annotated_side(fields: Mapping[str, Any], field: str) -> Messages:
    return parse_turns(fields[field], field) if isinstance(fields[field], list) else parse_response(fields, field)


def find_response_fields(fields: Mapping[str, Any]) -> tuple[str, str]:
    by_bare_name = {bare_field_name(field): field for field in fields if isinstance(fields[field], (str, list))}
    for stem in (*STEMS, *common_stem(by_bare_name)):
        for first, second in ENDINGS:
            if stem + first in by_bare_name and stem + second in by_bare_name:
                return by_bare_name[stem + first], by_bare_name[stem + second]
    raise RowRefused(
        f"no two of its fields ({', '.join(list(fields)[:8])}) are the responses. "
        "Map them, such as --map FIELD=response_a OTHER=response_b"
    )


def common_stem(fields: Collection[str]) -> list[str]:
    """The common beginning of the only two fields that differ in their endings alone, such as 回答a and 回答b."""
    stems = {
        field.removesuffix(first)
        for first, second in ENDINGS
        for field in fields
        if field.endswith(first) and field.removesuffix(first) + second in fields
    }
    return list(stems) if len(stems) == 1 else []


def find_annotated_names(fields: Mapping[str, Any], sides: tuple[str, str]) -> tuple[str, str]:
    for first, second in NAMES:
        names = first_candidate_name(fields, first), first_candidate_name(fields, second)
        if all(names) and names[0] != names[1] and not {first, second} & set(sides):
            return names
    return sides


def find_question_field(fields: Mapping[str, Any]) -> str:
    for field in QUESTIONS:
        if fields.get(field):
            return field
    raise RowRefused(
        f"none of its fields ({', '.join(list(fields)[:8])}) is the prompt. Map it, such as --map FIELD=query"
    )


def read_annotated_question(fields: Mapping[str, Any], field: str) -> Messages:
    question = fields[field]
    return parse_turns(question, field) if isinstance(question, list) else user_turn(value_as_text(question, field))


def aspect_from_question(question: str) -> str:
    """The aspect that a question of an annotation project asks about, by the question's name.

    Different questions have different aspects: a name that does not fit a key gets a checksum instead.
    """
    letters = "".join(sign for sign in unicodedata.normalize("NFKD", question) if not unicodedata.combining(sign))
    key = NOT_IN_A_KEY.sub("_", letters.lower()).strip("_")
    if len(key) > MAX_ASPECT or any(sign.isalnum() and not sign.isascii() for sign in letters):
        digest = hashlib.sha256(fold_name(question).encode(errors="replace")).hexdigest()[:8]
        return f"{key[: MAX_ASPECT - 9] or 'question'}_{digest}"
    return DEFAULT_ASPECT if not key or key.replace("_", "") in OVERALL else key
