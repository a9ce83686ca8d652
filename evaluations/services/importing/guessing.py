"""What the columns of a foreign file probably mean, by their names and by what stands in them."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evaluations.domain import FIELDS, OF_TEXT, FileFormat
from evaluations.formats.annotated import aspect_of
from evaluations.formats.candidates import MODEL_COLUMNS, plain
from evaluations.formats.values import NUMBER
from evaluations.formats.wording import folded, parse_label
from evaluations.services.importing.mapping import Sheet

# As columns are called elsewhere, the likelier names first; letters and digits only.
NAMES: Final[Mapping[str, str]] = {
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
PER_KIND: Final = (FileFormat.COMPARISONS, FileFormat.RESPONSES, FileFormat.VERDICTS, FileFormat.SCORES)


SIDE_WORDS: Final = frozenset(word for pair in SIDES for word in pair)
RESPONSES: Final = frozenset(NAMES["response"].split())
TELLING: Final = re.compile(
    "chosen|reject|prefer|winn|los[et]|best|better|wors"
)  # as a candidate's name it would be a label
KNOWN: Final = frozenset(word for names in NAMES.values() for word in names.split())


@dataclass(frozen=True)
class Guess:
    """The column of each field, or its value for all rows; and what each word of the choices means."""

    columns: Mapping[str, str]
    constants: Mapping[str, str]


def guess(sheet: Sheet, kind: str) -> Guess:
    wanted = [field.name for field in FIELDS[kind]]
    found = in_pairs(sheet.columns, wanted) or (chosen_between(sheet) if "response_a" in wanted else {})
    for name in wanted:
        if name not in found and (column := by_name(sheet.columns, name, taken=found.values())):
            found[name] = column
    if "messages" in found and "query" in found:
        del found["messages"]
    told = {}
    if "choice" in wanted and "choice" not in found and (column := of_choices(sheet, found.values())):
        found["choice"] = column
        told["aspect"] = aspect_of(column)
    return Guess(found, {**filled_in(found, wanted), **{field: told[field] for field in told if field not in found}})


def guessed_kind(sheet: Sheet) -> str:
    """Of which kind of row most of what is needed has a column; the richer one where two fit alike."""
    return str(max(PER_KIND, key=lambda kind: share(sheet, kind)))


def share(sheet: Sheet, kind: str) -> float:
    found = guess(sheet, kind).columns
    names = [field.name for field in FIELDS[kind] if field.needed and not field.whole_file]
    needed = [name for name in names if name != "query_id" or "query" not in names]  # else it is made of the texts
    return sum(name in found or (name == "query" and "messages" in found) for name in needed) / max(len(needed), 1)


def by_name(columns: Sequence[str], field: str, taken: Collection[str]) -> str | None:
    free = {plain(column): column for column in reversed(columns) if column not in taken}
    return next((free[name] for name in (plain(field), *NAMES.get(field, "").split()) if name in free), None)


def in_pairs(columns: Sequence[str], wanted: Sequence[str]) -> dict[str, str]:
    """The two candidates and the two responses, by names that differ only in their side."""
    free = {plain(column): column for column in reversed(columns)}
    found: dict[str, str] = {}
    for field in ("response", "candidate"):
        if f"{field}_a" not in wanted:
            continue
        names = [*NAMES[field].split(), *(("conversation", "messages", "") if field == "response" else ())]
        for first, second in paired_names(names):
            if first in free and second in free and free[first] not in found.values():
                found[f"{field}_a"], found[f"{field}_b"] = free[first], free[second]
                break
    if "response_a" in wanted and "response_a" not in found and len(those := with_owners(columns)) == 2:
        found["response_a"], found["response_b"] = those
    return found


def with_owners(columns: Sequence[str]) -> list[str]:
    """Columns that are called after a response and whose it is: ``gpt4_answer``."""
    return [
        column
        for column in columns
        if owner(column) != column and plain(column) not in KNOWN and not TELLING.search(column.lower())
    ]


def chosen_between(sheet: Sheet) -> dict[str, str]:
    """Two responses whose columns are called by their candidates, as a column of choices names them."""
    for column, words in sheet.words.items():
        names = {folded(word) for word in words if word and not parse_label(word)}
        sides = [other for other in sheet.columns if other != column and folded(other) in names]
        if len(sides) == len(names) == 2:
            return {"response_a": sides[0], "response_b": sides[1], "choice": column}
    return {}


def owner(column: str) -> str:
    """Whose response it is, by the column's name; the name itself where that does not say it."""
    parts = [part for part in re.split(r"[_. ]+", column) if part]
    rest = [part for part in parts if plain(part) not in RESPONSES]
    names_one = len(rest) == len(parts) - 1 and any(plain(part) not in SIDE_WORDS for part in rest)
    return "_".join(rest) if names_one else column


def paired_names(names: Sequence[str]) -> list[tuple[str, str]]:
    after = [(name + one, name + other) for name in names for one, other in SIDES if name]
    before = [(one + name, other + name) for name in names for one, other in SIDES if len(one) > 1 or not name]
    return after + before


def of_choices(sheet: Sheet, taken: Collection[str]) -> str | None:
    """The first column that holds nothing but words for choices."""
    for column, words in sheet.words.items():
        told = [word for word in words if word]
        if column not in taken and told and all(map(parse_label, told)):
            return column
    return None


def filled_in(found: Mapping[str, str], wanted: Sequence[str]) -> dict[str, str]:
    """What stands for all rows where no column says it."""
    told = {}
    if "query_id" not in found and ("query" in found or "messages" in found):
        told["query_id"] = OF_TEXT
    for side in ("a", "b"):
        if f"candidate_{side}" in wanted and f"candidate_{side}" not in found and f"response_{side}" in found:
            told[f"candidate_{side}"] = owner(found[f"response_{side}"])
    if ("choice" in found or "value" in found) and "rater_kind" not in found:
        told["rater_kind"] = "human"
    return told


def is_number(word: str) -> bool:
    """Whether a person must say what it means: every other word that is no choice may be a candidate's name."""
    return NUMBER.fullmatch(word) is not None


def choices_of(words: Sequence[str]) -> dict[str, str]:
    """What each word probably means; "" where it does not say, as no number does."""
    return {word: str(label.choice) if (label := parse_label(word)) else "" for word in words}
