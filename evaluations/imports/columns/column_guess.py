"""What the columns of a file mean: a guess by their names and values, and the rules of a mapping."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evaluations.domain.files import (
    CANDIDATE_FIELD,
    FIELDS_BY_FORMAT,
    ID_FROM_ROW_NUMBER,
    ID_FROM_TEXT,
    FileFormat,
    ReadOptions,
)
from evaluations.formats.annotation_fields import aspect_from_question
from evaluations.formats.candidate_names import MODEL_COLUMNS, plain_column_name
from evaluations.formats.label_parser import fold_name, parse_label
from evaluations.formats.values import NUMBER
from evaluations.imports.source_files import Sheet

# Column names of other tools, likelier ones first; letters and digits only.
COLUMN_NAMES: Final[Mapping[str, str]] = {
    "query_id": "queryid questionid promptid instructionid qid exampleid itemid sampleid id uid uuid idx index",
    "query": (
        "query prompt question instruction userprompt usermessage userquery querytext questiontext prompttext input "
        "frage aufgabe pregunta pergunta domanda вопрос 问题 問題 提示 指令 質問 질문"
    ),
    "messages": "messages conversation dialogue turns chat history",
    "context": "context passage document article background systemprompt source",
    "reference": "reference referenceanswer groundtruth goldanswer idealanswer target expected",
    "category": "category task tasktype subset domain topic questiontype type section language",
    "cluster": "cluster group groupid passageid documentid docid topicid",
    "choice": (
        "choice winner preference preferred preferredresponse label verdict vote result annotation "
        "overallpreference judgment judgement "
        "bewertung gewinner urteil préférence gagnant ganador vencedor vincitore выбор 偏好 选择 胜者 勝者 選択 선택"
    ),
    "value": "value score rating stars grade points",
    "rater": "rater annotator annotatorid judge judgename worker workerid user userid evaluator reviewer rateruid",
    "rater_kind": "raterkind ratertype judgetype",
    "aspect": "aspect criterion criteria dimension attribute metric",
    "rationale": "rationale reason reasoning explanation justification feedback critique",
    "note": "note notes comment comments remark",
    "created_at": "createdat timestamp time date tstamp datetime",
    "shown_swapped": "shownswapped swapped reversed flipped isswapped",
    "sample": "sample samplenumber round",
    "candidate": MODEL_COLUMNS,
    "response": "response output answer completion text generation reply modeloutput generatedtext prediction "
    "antwort réponse respuesta resposta risposta ответ 回答 答案 回复 応答 답변",
}
SIDES: Final = (("a", "b"), ("1", "2"), ("0", "1"), ("left", "right"), ("first", "second"), ("x", "y"), ("i", "ii"))
ROW_KINDS: Final = (FileFormat.COMPARISONS, FileFormat.RESPONSES, FileFormat.VERDICTS, FileFormat.SCORES)
SIDE_WORDS: Final = frozenset(word for pair in SIDES for word in pair)
RESPONSE_NAMES: Final = frozenset(COLUMN_NAMES["response"].split())
# A column of such a name holds a label, not the responses of a candidate.
OUTCOME_WORDS: Final = re.compile("chosen|reject|prefer|winn|los[et]|best|better|wors")
KNOWN_NAMES: Final = frozenset(word for names in COLUMN_NAMES.values() for word in names.split())


@dataclass(frozen=True)
class ColumnGuess:
    """The column of each field, or its value for all rows; and what each word of the choices means."""

    columns: Mapping[str, str]
    constants: Mapping[str, str]


def guess_columns(sheet: Sheet, kind: str) -> ColumnGuess:
    fields = [field.name for field in FIELDS_BY_FORMAT[kind]]
    columns = find_side_columns(sheet.columns, fields) or (
        find_columns_named_in_choices(sheet) if "response_a" in fields else {}
    )
    for field in fields:
        if field not in columns and (column := find_column_by_name(sheet.columns, field, taken=columns.values())):
            columns[field] = column
    if "messages" in columns and "query" in columns:
        del columns["messages"]
    question = None
    if "choice" in fields and "choice" not in columns:
        question = find_choice_column(sheet, columns.values())
    if question is not None:
        columns["choice"] = question
    constants = guess_constants(columns, fields)
    if question is not None and "aspect" not in columns:
        constants["aspect"] = aspect_from_question(question)
    return ColumnGuess(columns, constants)


def guess_row_kind(sheet: Sheet) -> str:
    """The kind of row that most needed columns fit; the richer kind if two fit equally."""
    return str(max(ROW_KINDS, key=lambda kind: measure_column_match(sheet, kind)))


def measure_column_match(sheet: Sheet, kind: str) -> float:
    columns = guess_columns(sheet, kind).columns
    names = [field.name for field in FIELDS_BY_FORMAT[kind] if field.needed and not field.whole_file]
    needed = [name for name in names if name != "query_id" or "query" not in names]  # the id can be a hash of the text
    return sum(name in columns or (name == "query" and "messages" in columns) for name in needed) / max(len(needed), 1)


def find_column_by_name(columns: Sequence[str], field: str, taken: Collection[str]) -> str | None:
    free = {plain_column_name(column): column for column in reversed(columns) if column not in taken}
    return next(
        (free[name] for name in (plain_column_name(field), *COLUMN_NAMES.get(field, "").split()) if name in free), None
    )


def find_side_columns(columns: Sequence[str], fields: Sequence[str]) -> dict[str, str]:
    """The two candidates and the two responses, by names that differ only in their side."""
    free = {plain_column_name(column): column for column in reversed(columns)}
    sides: dict[str, str] = {}
    for field in ("response", "candidate"):
        if f"{field}_a" not in fields:
            continue
        names = [*COLUMN_NAMES[field].split(), *(("conversation", "messages", "") if field == "response" else ())]
        for first, second in list_side_names(names):
            if first in free and second in free and free[first] not in sides.values():
                sides[f"{field}_a"], sides[f"{field}_b"] = free[first], free[second]
                break
    if (
        "response_a" in fields
        and "response_a" not in sides
        and len(unnamed := find_columns_with_candidate(columns)) == 2
    ):
        sides["response_a"], sides["response_b"] = unnamed
    return sides


def find_columns_with_candidate(columns: Sequence[str]) -> list[str]:
    """Columns that are named after a response and its candidate: ``gpt4_answer``."""
    return [
        column
        for column in columns
        if candidate_in_column_name(column) != column
        and plain_column_name(column) not in KNOWN_NAMES
        and not OUTCOME_WORDS.search(column.lower())
    ]


def find_columns_named_in_choices(sheet: Sheet) -> dict[str, str]:
    """Two responses whose columns are named after their candidates, as in a column of choices."""
    for column, words in sheet.words.items():
        names = {fold_name(word) for word in words if word and not parse_label(word)}
        sides = [other for other in sheet.columns if other != column and fold_name(other) in names]
        if len(sides) == len(names) == 2:
            return {"response_a": sides[0], "response_b": sides[1], "choice": column}
    return {}


def candidate_in_column_name(column: str) -> str:
    """The candidate of a response column, taken from the column's name."""
    parts = [part for part in re.split(r"[_. ]+", column) if part]
    others = [part for part in parts if plain_column_name(part) not in RESPONSE_NAMES]
    names_one = len(others) == len(parts) - 1 and any(plain_column_name(part) not in SIDE_WORDS for part in others)
    return "_".join(others) if names_one else column


def list_side_names(names: Sequence[str]) -> list[tuple[str, str]]:
    after = [(name + first, name + second) for name in names for first, second in SIDES if name]
    before = [(first + name, second + name) for name in names for first, second in SIDES if len(first) > 1 or not name]
    return after + before


def find_choice_column(sheet: Sheet, taken: Collection[str]) -> str | None:
    """The first column that holds nothing but words for choices."""
    for column, words in sheet.words.items():
        labels = [word for word in words if word]
        if column not in taken and labels and all(map(parse_label, labels)):
            return column
    return None


def guess_constants(columns: Mapping[str, str], fields: Sequence[str]) -> dict[str, str]:
    """Values for all rows of fields without a column."""
    constants = {}
    if "query_id" not in columns and ("query" in columns or "messages" in columns):
        constants["query_id"] = ID_FROM_TEXT
    for side in ("a", "b"):
        if f"candidate_{side}" in fields and f"candidate_{side}" not in columns and f"response_{side}" in columns:
            constants[f"candidate_{side}"] = candidate_in_column_name(columns[f"response_{side}"])
    if ("choice" in columns or "value" in columns) and "rater_kind" not in columns:
        constants["rater_kind"] = "human"
    return constants


def is_number_word(word: str) -> bool:
    """Whether the word is a number, whose meaning a person must state. Other words may be names of candidates."""
    return NUMBER.fullmatch(word) is not None


def guess_choice_meanings(words: Sequence[str]) -> dict[str, str]:
    """Guess the choice that each word means; "" if it is unclear, as for numbers."""
    return {word: str(label.choice) if (label := parse_label(word)) else "" for word in words}


# ---- the rules of a mapping

GENERATED_IDS: Final = (ID_FROM_TEXT, ID_FROM_ROW_NUMBER)
FIXED_VALUES: Final[Mapping[str, Sequence[str]]] = {
    "rater_kind": ("human", "judge", "gold"),
    "shown_swapped": ("true", "false", "folded"),
}


@dataclass(frozen=True)
class ColumnFields:
    """The column of each field, or its value for all rows, for one kind of row."""

    kind: str
    columns: Mapping[str, str]
    values: Mapping[str, str]


@dataclass(frozen=True)
class MappingFault:
    """``part``: whether the column or the value of the field is at fault."""

    part: str  # columns or values
    field: str
    message: str


def find_faults(mapped: ColumnFields, known_columns: Sequence[str]) -> Iterator[MappingFault]:
    fields = {field.name: field for field in FIELDS_BY_FORMAT[mapped.kind]}
    for name, column in mapped.columns.items():
        if name not in fields:
            yield MappingFault("columns", name, f"Rows of {mapped.kind} have no such field.")
        elif column not in known_columns:
            yield MappingFault("columns", name, f"The file has no column “{column}”.")
    for name, value in mapped.values.items():
        if name not in fields or not (fields[name].whole_file or value in GENERATED_IDS):
            yield MappingFault("values", name, "This field cannot have a fixed value.")
        elif name in mapped.columns:
            yield MappingFault("values", name, "Choose a column or a fixed value, not both.")
        elif value not in FIXED_VALUES.get(name, (value,)):
            yield MappingFault("values", name, f"“{value}” is not one of {', '.join(FIXED_VALUES[name])}.")
    for name, spec in fields.items():
        is_given = name in mapped.columns or name in mapped.values
        if spec.needed and not is_given and not (name == "query" and "messages" in mapped.columns):
            message = "Choose a column, or enter a fixed value." if spec.whole_file else "Choose a column."
            yield MappingFault("columns", name, message)


def build_reading(mapped: ColumnFields, sheet: Sheet, choices: Mapping[str, str]) -> ReadOptions:
    """The read options of a mapping. Unmapped columns that are named like a field are not read as it."""
    known_columns, later = sheet.columns, sheet.columns[len(sheet.sampled_columns) :]
    mapping: dict[str, list[str]] = {}
    names = [field.name for field in FIELDS_BY_FORMAT[mapped.kind]]
    for name in names:
        if column := mapped.columns.get(name):
            mapping.setdefault(column, []).append(name)
    own_names = set(names) - ({CANDIDATE_FIELD} & mapped.values.keys())
    for column in known_columns:
        if column not in mapping and column in own_names:
            mapping[column] = [f"{column} of the file"]
    return ReadOptions(
        format=mapped.kind,
        mapping={column: ",".join(names) for column, names in mapping.items()},
        constants=mapped.values,
        choices=choices,
        later_columns=tuple(column for column in later if column in mapping),
    )
