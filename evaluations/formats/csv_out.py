"""Exported comparisons as CSV: one row a comparison, cells that a spreadsheet would execute made harmless."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Final, cast

from evaluations.formats.exported import (
    EXECUTED,
    MATERIAL,
    NEUTRALISED,
    SPLIT,
    ExportedRow,
    Judge,
    JudgesChoice,
    Label,
    Person,
    PersonsScores,
    Raters,
    Scores,
    packed,
    packed_response,
)
from evaluations.formats.leaving import Leaving, Needs, Options, Rows, Tally
from evaluations.formats.shaped import Shaped

# What a review says of itself, each in a column of the person.
OF_REVIEW: Final = (
    *("shown", "blind", "reveal", "judge_first", "judge_shown", "awaits_judge"),
    *("picked_by", "round", "probability", "active_ms", "note", "spans"),
)

QUOTED: Final = re.compile('[",\r\n]')
# All cells of a row are looked at together: few rows have one that a spreadsheet would execute.
BETWEEN: Final = "\0"
SUSPECTED: Final = re.compile(f"{BETWEEN}(?:{'|'.join(map(re.escape, EXECUTED))})")


def lines(rows: Iterable[ExportedRow], raters: Raters) -> Iterator[bytes]:
    """A head with the columns of these raters and aspects, then the rows; RFC 4180, UTF-8."""
    named, flattened = columns(raters), Flattened()
    yield line(named)
    for row in rows:
        flat = neutralised(flattened.cells(row))
        yield line(map(flat.get, named, repeat("")))


def line(cells: Iterable[str]) -> bytes:
    """As the standard library writes it, which looks at every letter and takes twice as long."""
    return (",".join([quoted(cell) if QUOTED.search(cell) else cell for cell in cells]) + "\r\n").encode()


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


def columns(raters: Raters) -> list[str]:
    """Material first, then labels and what settled them, gold, judges and people, each by name and then by aspect."""
    named = [*MATERIAL, SPLIT]
    for aspect in raters.aspects:
        named += [f"label:{aspect}{part}" for part in ("", ":source", ":n", ":votes", ":by")]
    for aspect in raters.aspects:
        named += [f"adjudication:{aspect}{part}" for part in ("", ":reason", ":by", ":at")]
    named += ["comments", "skipped"]
    for name in raters.gold:
        named += [f"gold:{name}:{aspect}" for aspect in raters.aspects]
    for name in raters.judges:
        named += [f"judge:{name} ({part})" for part in ("kind", "rationale", "failures")]
        for aspect in raters.aspects:
            named += [f"judge:{name}:{aspect}{part}" for part in ("", ":inconsistent", ":orders")]
    for name in raters.people:
        named += [f"person:{name} ({part})" for part in OF_REVIEW]
        parts = ("", ":first", ":reason", ":note", *((":scores",) if name in raters.scored else ()))
        for aspect in raters.aspects:
            named += [f"person:{name}:{aspect}{part}" for part in parts]
    return [*named, NEUTRALISED]


class Flattened:
    """Rows flattened. What was not given is an empty cell, like an empty text."""

    def __init__(self) -> None:
        self.labels, self.choices = Shaped(label_cells), Shaped(choice_cells)

    def cells(self, row: ExportedRow) -> dict[str, str]:
        flat = material_cells(row)
        for aspect, label in row["labels"].items():
            flat |= self.labels.of(label, aspect)
        for aspect, settled in row["adjudications"].items():
            flat[f"adjudication:{aspect}"] = settled["choice"]
            flat |= {f"adjudication:{aspect}:{part}": str(settled[part]) for part in ("reason", "by", "at")}
        if row["comments"]:
            flat["comments"] = packed(row["comments"])
        if row["skipped"]:
            flat["skipped"] = packed(row["skipped"])
        for gold in row["gold"]:
            for aspect, choice in gold["choices"].items():
                column = f"gold:{gold['rater']}:{aspect}"
                flat[column] = f"{flat[column]} | {choice}" if column in flat else choice
        for judge in row["judges"]:
            flat |= judge_cells(judge)
            for aspect, said in judge["choices"].items():
                flat |= self.choices.of(said, judge["judge"], aspect)
        for person in row["people"]:
            add_person(flat, person)
        return flat


def material_cells(row: ExportedRow) -> dict[str, str]:
    return {
        "query_id": row["query_id"],
        "cluster": row["cluster"],
        "category": row["category"],
        "query": row["query"] or "",
        "messages": packed(row["messages"]) if row["messages"] else "",
        "context": row["context"] or "",
        "reference": row["reference"] or "",
        "candidate_a": row["candidate_a"],
        "response_a": packed_response(row["response_a"]),
        "candidate_b": row["candidate_b"],
        "response_b": packed_response(row["response_b"]),
        "metadata": packed(row["metadata"]) if row["metadata"] else "",
        SPLIT: row.get("split", ""),
    }


def label_cells(label: Label, aspect: str) -> dict[str, str]:
    return {
        f"label:{aspect}": label["choice"] or "",
        f"label:{aspect}:source": label["source"],
        f"label:{aspect}:n": str(label["n"]),
        f"label:{aspect}:votes": " ".join(f"{choice}={n}" for choice, n in sorted(label["votes"].items())),
        f"label:{aspect}:by": label["by"] or "",
    }


def judge_cells(judge: Judge) -> dict[str, str]:
    name = f"judge:{judge['judge']}"
    return {
        f"{name} (kind)": f"{judge['kind']} ({judge['remark']})" if "remark" in judge else judge["kind"],
        f"{name} (rationale)": "\n\n".join(words_in(judge)),
        f"{name} (failures)": " ".join(f"{state}={count}" for state, count in sorted(judge["failures"].items())),
    }


def choice_cells(said: JudgesChoice, judge: str, aspect: str) -> dict[str, str]:
    name = f"judge:{judge}:{aspect}"
    return {
        name: said["choice"] or "",
        f"{name}:inconsistent": yes_or_no(said["inconsistent"]),
        f"{name}:orders": scores_in(said) if "scores" in said else orders_in(said),
    }


def orders_in(said: JudgesChoice) -> str:
    return " ".join(
        f"{shown}={','.join(choice or '' for choice in choices)}" for shown, choices in sorted(said["orders"].items())
    )


def scores_in(said: JudgesChoice) -> str:
    scores = said["scores"]
    return f"derived from scores A={scores['A']} B={scores['B']} margin={scores['margin']}{direction(scores)}"


def direction(scores: Scores | PersonsScores) -> str:
    return " lower is better" if scores.get("lower_is_better") else ""


def words_in(judge: Judge) -> Iterator[str]:
    """What it wrote of all aspects by the order shown, then what a file says of single ones."""
    yield from by_order(judge["rationales"])
    for aspect, said in judge["choices"].items():
        for texts in (said.get("rationales", {}), said.get("notes", {})):
            yield from (f"{aspect}, {text}" for text in by_order(texts))


def by_order(texts_by_order: Mapping[str, Sequence[str]]) -> Iterator[str]:
    return (f"{shown}: {text}" for shown, texts in sorted(texts_by_order.items()) for text in texts if text)


def yes_or_no(value: bool | None) -> str:
    return {True: "yes", False: "no", None: ""}[value]


def add_person(flat: dict[str, str], person: Person) -> None:
    """A person's second pass stands behind the first in the same cells, after a bar."""
    name = f"person:{person['rater']}"
    of_review = cast("Mapping[str, Any]", person)
    said = {f"{name} ({part})": cell_of(of_review.get(part)) for part in OF_REVIEW}
    for aspect, choice in person["choices"].items():
        said[f"{name}:{aspect}"] = choice["final"] or ""
        said[f"{name}:{aspect}:first"] = choice["first"] or ""
        said[f"{name}:{aspect}:reason"] = choice["reason"] or ""
        said[f"{name}:{aspect}:note"] = choice["note"] or choice.get("rationale", "")
        if "scores" in choice:
            said[f"{name}:{aspect}:scores"] = persons_scores(choice["scores"])
    for column, cell in said.items():
        flat[column] = f"{flat[column]} | {cell}" if column in flat else cell


def cell_of(value: Any) -> str:
    """Yes or no, a list as JSON, and nothing for what is not known."""
    if isinstance(value, bool):
        return yes_or_no(value)
    if isinstance(value, list):
        return packed(value) if value else ""
    return "" if value is None else str(value)


def persons_scores(scores: PersonsScores) -> str:
    told = [
        f"{stage} {' '.join(f'{side}={number}' for side, number in given.items() if number is not None)}"
        for stage, given in (("first", scores["first"]), ("final", scores["final"]))
        if any(number is not None for number in given.values())
    ]
    return f"{'; '.join(told)}; margin={scores['margin']}{direction(scores)}"


def neutralised(flat: dict[str, str]) -> dict[str, str]:
    """An apostrophe before every cell that a spreadsheet would execute, and the names of those cells."""
    if not SUSPECTED.search(BETWEEN + BETWEEN.join(flat.values())):
        return flat
    marked = [column for column, cell in flat.items() if cell.startswith(EXECUTED)]
    safe = flat | {column: "'" + flat[column] for column in marked}
    safe[NEUTRALISED] = "\n".join(marked)
    return safe


def written(rows: Rows, raters: Raters, options: Options, tally: Tally) -> Iterator[bytes]:
    yield from lines(counted(cast("Iterable[ExportedRow]", rows), tally), raters)


def counted(rows: Iterable[ExportedRow], tally: Tally) -> Iterator[ExportedRow]:
    for row in rows:
        tally.rows += 1
        yield row


FORMAT: Final = Leaving(
    name="csv",
    title="CSV",
    purpose="one row a comparison, for spreadsheets",
    ending="csv",
    content_type="text/csv; charset=utf-8",
    write=written,
    needs=Needs.EVERYTHING,
)
