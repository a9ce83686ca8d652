"""Notices of what an import does not store as the file has it, counted in sentences."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from evaluations.domain.files import (
    ComparisonRow,
    FileRow,
    Notice,
    NoticeKind,
    QueryRow,
    ResponseRow,
    ScoreRow,
    VerdictRow,
)
from evaluations.formats.label_parser import is_label_column, parse_label
from evaluations.formats.values import MAX_CATEGORY

# Texts that programs write for a missing value, and spreadsheets for one that they cannot show.
NO_VALUES: Final = frozenset(
    {"nan", "NaN", "NAN", "None", "null", "NULL", "<NA>", "NaT", "undefined", "[object Object]"}
    | {"#N/A", "#REF!", "#NAME?", "#VALUE!", "#DIV/0!", "#NUM!", "#NULL!", "#ERROR!", "#SPILL!"}
)
MAX_NO_VALUE_CHARACTERS: Final = max(map(len, NO_VALUES))
MAX_CELL_CHARACTERS: Final = 32_767  # characters of a spreadsheet's: longer texts are cut off
WORDS: Final = 8  # listed of each thing, the most frequent first
LINES: Final = 3
LISTED: Final = 50  # sentences
KEPT: Final = 1_000  # different words, and different questions, that are counted apart
MAX_WORD_CHARACTERS: Final = 60
OTHERS: Final = "others"
# The names and the texts in each row that are looked at.
LOOKED_AT: Final[Mapping[type, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    ComparisonRow: (("candidate_a", "candidate_b"), ("response_a", "response_b", "query")),
    ResponseRow: (("candidate",), ("response", "query")),
    QueryRow: ((), ("query",)),
    VerdictRow: (("rater",), ()),
    ScoreRow: (("rater",), ()),
}
# What is counted, and the sentence.
SENTENCES: Final[Mapping[NoticeKind, tuple[str, str]]] = {
    NoticeKind.NOT_UNDERSTOOD: ("label", "{count}{of} not understood, so not imported: {words} ({lines})."),
    NoticeKind.STATUS: ("answer", "{count} not imported because of the status: {words} ({lines})."),
    NoticeKind.NO_STATUS: (
        "response",
        "{count} without a status: drafts and discarded responses may be among them. Argilla's to_json leaves the "
        "status out; to_list(flatten=True) and to_datasets() export it.",
    ),
    NoticeKind.NO_ANSWER: ("annotation", "{count}{of} without an answer ({lines})."),
    NoticeKind.COLUMN: ("column", "Columns not imported: {words} ({lines})."),
    NoticeKind.NOT_STORED: ("thing", "Not imported: {things} ({lines})."),
    NoticeKind.EQUAL_RESPONSES: ("comparison", "{count} of two equal responses ({lines})."),
    NoticeKind.SHORTENED: ("value", "{count}{of} at the length limit, so perhaps cut off ({lines})."),
    NoticeKind.NO_VALUE: (
        "value",
        "{count}{of} kept as text: {words} ({lines}). Programs write this for a missing or broken value.",
    ),
    NoticeKind.RENAMED: ("question", "A question is stored as the aspect “{where}”: {words}."),
}


class ImportNotices:
    """Counts notices by kind and place, and finds columns of metadata that look like labels."""

    def __init__(self) -> None:
        self._words: dict[tuple[NoticeKind, str], Counter[str]] = {}
        self._lines: dict[tuple[NoticeKind, str], list[int]] = {}
        self._label_columns: dict[str, Counter[str]] = {}
        self._other_columns: set[str] = set()

    def count(self, rows: Sequence[FileRow], notices: Sequence[Notice]) -> None:
        """Count the notices of one entry of a file, and look for more in its rows."""
        for notice in notices:
            self._add(notice)
        for row in rows:
            if isinstance(row, (ComparisonRow, ResponseRow, QueryRow)):
                self._count_material(row)
            self._look_for_no_values(row)

    def _count_material(self, row: QueryRow | ComparisonRow | ResponseRow) -> None:
        if len(row.query.category) == MAX_CATEGORY:
            self._add(Notice(row.line, NoticeKind.SHORTENED, row.query.category, "category"))
        if isinstance(row, ComparisonRow):
            if row.response_a == row.response_b:
                self._add(Notice(row.line, NoticeKind.EQUAL_RESPONSES))
            self._look_for_labels(row.metadata, (row.candidate_a,), (row.candidate_b,))
        elif isinstance(row, ResponseRow):
            self._look_for_labels(row.metadata)

    def _look_for_no_values(self, row: FileRow) -> None:
        names, texts = LOOKED_AT.get(type(row), ((), ()))
        for field in names:
            if getattr(row, field) in NO_VALUES:
                self._add(Notice(row.line, NoticeKind.NO_VALUE, getattr(row, field), field))
        for field in texts:
            messages = row.query.messages if field == "query" else getattr(row, field)  # type: ignore[union-attr]
            length = len(text := messages[0]["content"]) if len(messages) == 1 else MAX_NO_VALUE_CHARACTERS + 1
            if length <= MAX_NO_VALUE_CHARACTERS and text.strip() in NO_VALUES:
                self._add(Notice(row.line, NoticeKind.NO_VALUE, text, field))
            elif length == MAX_CELL_CHARACTERS:
                self._add(Notice(row.line, NoticeKind.SHORTENED, text, field))

    def sentences(self) -> list[str]:
        """The sentences on all notices; those on lost content come first."""
        sentences = [
            notice_sentence(kind, where, words, self._lines[kind, where])
            for kind in SENTENCES
            for (kind_of_words, where), words in self._words.items()
            if kind_of_words == kind
        ]
        sentences += [label_column_sentence(column, words) for column, words in self._label_columns.items()]
        return (
            [*sentences[:LISTED], f"And {len(sentences) - LISTED:,} lines like these."]
            if len(sentences) > LISTED
            else sentences
        )

    def _add(self, notice: Notice) -> None:
        place = notice.kind, notice.where
        if place not in self._words and len(self._words) >= KEPT:
            place = notice.kind, OTHERS
        count_word(self._words.setdefault(place, Counter()), notice.what)
        lines = self._lines.setdefault(place, [])
        if len(lines) <= LINES and notice.line not in lines:
            lines.append(notice.line)

    def _look_for_labels(
        self, metadata: Mapping[str, Any], names_a: Sequence[str] = (), names_b: Sequence[str] = ()
    ) -> None:
        """A column is of labels by its name, or where each of its values is a label."""
        for column, value in metadata.items():
            if column in self._other_columns or value in (None, "", [], {}):
                continue
            text = value if isinstance(value, str) else str(value)
            is_label = is_label_column(column) or (names_a and parse_label(text, names_a, names_b))
            if is_label:
                count_word(self._label_columns.setdefault(column, Counter()), text)
            else:
                self._other_columns.add(column)
                self._label_columns.pop(column, None)


def count_word(words: Counter[str], text: str) -> None:
    text = " ".join(text.split())
    word = text if len(text) <= MAX_WORD_CHARACTERS else f"{text[:MAX_WORD_CHARACTERS]}…"
    words[word if word in words or len(words) < KEPT else OTHERS] += 1


def notice_sentence(kind: NoticeKind, where: str, words: Counter[str], lines: Sequence[int]) -> str:
    thing, template = SENTENCES[kind]
    return template.format(
        count=f"{words.total():,} {thing}{'' if words.total() == 1 else 's'}",
        of=f" of “{where}”" if where else "",
        where=where,
        words=list_words(words),
        things="; ".join(list_things(words)),
        lines=list_lines(lines),
    )


def label_column_sentence(column: str, words: Counter[str]) -> str:
    return (
        f"The column “{column}” looks like labels and is kept as metadata: {list_words(words)}. "
        "To import it, map it to “choice”, “choice:ASPECT” or “value”, and name the rater and the rater kind."
    )


def list_words(words: Counter[str]) -> str:
    shown = ", ".join(f"“{word}” {number:,}" for word, number in words.most_common(WORDS))
    return f"{shown} and {len(words) - WORDS:,} more" if len(words) > WORDS else shown


def list_things(things: Counter[str]) -> Iterator[str]:
    yield from (f"{what} ({number:,})" for what, number in things.most_common(WORDS))
    if len(things) > WORDS:
        yield f"and {len(things) - WORDS:,} more"


def list_lines(lines: Sequence[int]) -> str:
    shown = [f"{line:,}" for line in lines[:LINES]]
    return f"line{'s' if len(lines) > 1 else ''} {', '.join([*shown, *(['…'] if len(lines) > LINES else [])])}"
