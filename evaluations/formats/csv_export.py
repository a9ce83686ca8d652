"""Exports as CSV, in which no cell can be executed by a spreadsheet."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Final, cast

from evaluations.formats.export_format import ExportFormat, RowKind, ShapeCache, count_rows
from evaluations.formats.exported_rows import (
    EXECUTED,
    MATERIAL,
    NEUTRALISED,
    SPLIT,
    ExportedAdjudication,
    ExportedJudge,
    ExportedJudgeChoice,
    ExportedLabel,
    ExportedPerson,
    ExportedPersonScores,
    ExportedRaters,
    ExportedRow,
    ExportedScores,
    pack_cell,
    pack_response,
)

# Fields of a review, each in a column of the person.
OF_REVIEW: Final = (
    *("shown", "blind", "reveal", "judge_first", "judge_shown", "awaits_judge"),
    *("picked_by", "round", "probability", "active_ms", "note", "spans"),
)

TEXTS: Final = ("query_id", "cluster", "category", "query", "context", "reference", "candidate_a", "candidate_b")
ADJUDICATION_PARTS: Final = (":category", ":reason", ":by", ":at", ":in_bulk")
QUOTED: Final = re.compile('[",\r\n]')
# All cells of a row are searched at once, since few rows have one that a spreadsheet would execute.
BETWEEN: Final = "\0"
SUSPECTED: Final = re.compile(f"{BETWEEN}(?:{'|'.join(map(re.escape, EXECUTED))})")


def csv_export_lines(rows: Iterable[ExportedRow], raters: ExportedRaters) -> Iterator[bytes]:
    """A header with the columns of these raters and aspects, then the rows; RFC 4180, UTF-8."""
    named, flattened = csv_columns(raters), RowFlattener()
    yield csv_line(named)
    for row in rows:
        flat = neutralise_row(flattened.cells(row))
        yield csv_line(map(flat.get, named, repeat("")))


def csv_line(cells: Iterable[str]) -> bytes:
    """A line as the standard library writes it, in half the time."""
    quoted = ['"' + cell.replace('"', '""') + '"' if QUOTED.search(cell) else cell for cell in cells]
    return (",".join(quoted) + "\r\n").encode()


def csv_columns(raters: ExportedRaters) -> list[str]:
    """Columns of the material, the labels and resolutions, gold, judges and people, by name and aspect."""
    named = [*MATERIAL, SPLIT]
    for aspect in raters.aspects:
        named += [f"label:{aspect}{part}" for part in ("", ":source", ":n", ":votes", ":by")]
    for aspect in raters.aspects:
        named += [f"adjudication:{aspect}{part}" for part in ("", *ADJUDICATION_PARTS)]
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


class RowFlattener:
    """Converts rows to flat cells; a missing value and an empty text are both an empty cell."""

    def __init__(self) -> None:
        self.labels, self.choices = ShapeCache(label_cells), ShapeCache(choice_cells)

    def cells(self, row: ExportedRow) -> dict[str, str]:
        flat = material_cells(row)
        for aspect, label in row["labels"].items():
            flat |= self.labels.get(label, aspect)
        for aspect, adjudication in row["adjudications"].items():
            flat |= adjudication_cells(adjudication, aspect)
        if row["comments"]:
            flat["comments"] = pack_cell(row["comments"])
        if row["skipped"]:
            flat["skipped"] = pack_cell(row["skipped"])
        for gold in row["gold"]:
            for aspect, choice in gold["choices"].items():
                column = f"gold:{gold['rater']}:{aspect}"
                flat[column] = f"{flat[column]} | {choice}" if column in flat else choice
        for judge in row["judges"]:
            flat |= judge_cells(judge)
            for aspect, choices_of_aspect in judge["choices"].items():
                flat |= self.choices.get(choices_of_aspect, judge["judge"], aspect)
        for person in row["people"]:
            flatten_person(flat, person)
        return flat


def material_cells(row: ExportedRow) -> dict[str, str]:
    return {
        **{name: row[name] or "" for name in TEXTS},
        "messages": pack_cell(row["messages"]) if row["messages"] else "",
        "response_a": pack_response(row["response_a"]),
        "response_b": pack_response(row["response_b"]),
        "metadata": pack_cell(row["metadata"]) if row["metadata"] else "",
        SPLIT: row.get("split", ""),
    }


def label_cells(label: ExportedLabel, aspect: str) -> dict[str, str]:
    return {
        f"label:{aspect}": label["choice"] or "",
        f"label:{aspect}:source": label["source"],
        f"label:{aspect}:n": str(label["n"]),
        f"label:{aspect}:votes": " ".join(f"{choice}={n}" for choice, n in sorted(label["votes"].items())),
        f"label:{aspect}:by": label["by"] or "",
    }


def judge_cells(judge: ExportedJudge) -> dict[str, str]:
    name = f"judge:{judge['judge']}"
    return {
        f"{name} (kind)": f"{judge['kind']} ({judge['remark']})" if "remark" in judge else judge["kind"],
        f"{name} (rationale)": "\n\n".join(rationale_texts(judge)),
        f"{name} (failures)": " ".join(f"{state}={count}" for state, count in sorted(judge["failures"].items())),
    }


def choice_cells(choice: ExportedJudgeChoice, judge: str, aspect: str) -> dict[str, str]:
    name = f"judge:{judge}:{aspect}"
    return {
        name: choice["choice"] or "",
        f"{name}:inconsistent": yes_or_no(choice["inconsistent"]),
        f"{name}:orders": scores_cell(choice) if "scores" in choice else orders_cell(choice),
    }


def orders_cell(judge_choice: ExportedJudgeChoice) -> str:
    return " ".join(
        f"{shown}={','.join(choice or '' for choice in choices)}"
        for shown, choices in sorted(judge_choice["orders"].items())
    )


def scores_cell(judge_choice: ExportedJudgeChoice) -> str:
    scores = judge_choice["scores"]
    return f"derived from scores A={scores['A']} B={scores['B']} margin={scores['margin']}{score_direction(scores)}"


def score_direction(scores: ExportedScores | ExportedPersonScores) -> str:
    return " lower is better" if scores.get("lower_is_better") else ""


def rationale_texts(judge: ExportedJudge) -> Iterator[str]:
    """The judge's rationales by order shown, then the notes of single aspects."""
    yield from rationales_by_order(judge["rationales"])
    for aspect, choice in judge["choices"].items():
        for texts in (choice.get("rationales", {}), choice.get("notes", {})):
            yield from (f"{aspect}, {text}" for text in rationales_by_order(texts))


def rationales_by_order(texts_by_order: Mapping[str, Sequence[str]]) -> Iterator[str]:
    return (f"{shown}: {text}" for shown, texts in sorted(texts_by_order.items()) for text in texts if text)


def adjudication_cells(adjudication: ExportedAdjudication, aspect: str) -> dict[str, str]:
    name = f"adjudication:{aspect}"
    parts = {f"{name}:{part}": adjudication[part] for part in ("category", "reason", "by", "at")}
    return {name: adjudication["choice"], **parts, f"{name}:in_bulk": yes_or_no(adjudication["in_bulk"])}


def yes_or_no(value: bool | None) -> str:
    return {True: "yes", False: "no", None: ""}[value]


def flatten_person(flat: dict[str, str], person: ExportedPerson) -> None:
    """Add a person's review to the cells; a second review follows the first after a bar."""
    name = f"person:{person['rater']}"
    of_review = cast("Mapping[str, Any]", person)
    cells = {f"{name} ({part})": csv_cell(of_review.get(part)) for part in OF_REVIEW}
    for aspect, choice in person["choices"].items():
        cells[f"{name}:{aspect}"] = choice["final"] or ""
        cells[f"{name}:{aspect}:first"] = choice["first"] or ""
        cells[f"{name}:{aspect}:reason"] = choice["reason"] or ""
        cells[f"{name}:{aspect}:note"] = choice["note"] or choice.get("rationale", "")
        if "scores" in choice:
            cells[f"{name}:{aspect}:scores"] = person_scores_cell(choice["scores"])
    for column, cell in cells.items():
        flat[column] = f"{flat[column]} | {cell}" if column in flat else cell


def csv_cell(value: Any) -> str:
    """A cell: yes or no for a boolean, JSON for a list, empty for None."""
    if isinstance(value, bool):
        return yes_or_no(value)
    if isinstance(value, list):
        return pack_cell(value) if value else ""
    return "" if value is None else str(value)


def person_scores_cell(scores: ExportedPersonScores) -> str:
    stages = [
        f"{stage} {' '.join(f'{side}={number}' for side, number in by_side.items() if number is not None)}"
        for stage, by_side in (("first", scores["first"]), ("final", scores["final"]))
        if any(number is not None for number in by_side.values())
    ]
    return f"{'; '.join(stages)}; margin={scores['margin']}{score_direction(scores)}"


def neutralise_row(flat: dict[str, str]) -> dict[str, str]:
    """Prefix cells that a spreadsheet would execute with an apostrophe, and list them."""
    if not SUSPECTED.search(BETWEEN + BETWEEN.join(flat.values())):
        return flat
    marked = [column for column, cell in flat.items() if cell.startswith(EXECUTED)]
    safe = flat | {column: "'" + flat[column] for column in marked}
    safe[NEUTRALISED] = "\n".join(marked)
    return safe


CSV_FORMAT: Final = ExportFormat(
    name="csv",
    title="CSV",
    purpose="everything, one row per comparison, for spreadsheets",
    ending="csv",
    write=lambda rows, raters, options, tally: csv_export_lines(count_rows(rows, tally), raters),
    needs=RowKind.EVERYTHING,
)

Cell = str | int | float | None


def table_as_csv(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> bytes:
    """A table as CSV, RFC 4180, UTF-8. None is an empty cell; numbers have enough digits to be read back exactly."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(map(neutralise_cell, columns))
    writer.writerows(map(neutralise_cell, row) for row in rows)
    return file.getvalue().encode()


def neutralise_cell(cell: Cell) -> Cell:
    """A text that a spreadsheet would execute gets an apostrophe; negative numbers stay as they are."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(EXECUTED) else cell
