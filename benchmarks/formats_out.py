"""How fast each format is written, by itself: rows that are there already, bytes that are thrown away.

    python benchmarks/formats_out.py [--rows 20000]

Prints JSON: comparisons (verdicts, scores) per second of processor time, and bytes of a row. The rows have responses of
1 kB, labels of six aspects, a judge in both orders with a rationale, and a person.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "judgeweb.settings")

from evaluations.formats.export_format import ExportFormat, ExportOptions, ExportTally, RowKind
from evaluations.formats.export_formats import EXPORT_FORMATS
from evaluations.formats.exported_rows import ExportedRaters

ASPECTS = ("helpfulness", "factuality", "clarity", "depth", "engagement", "safety")
RATERS = ExportedRaters(aspects=ASPECTS, people=["ann"], judges=["gpt"], gold=[])
WORDS = ("The quick brown fox jumps over the lazy dog. " * 25)[:1000]
# Equal ones are the same object, as the engine hands them over.
LABELS = {
    (aspect, choice): {"choice": choice, "source": "majority", "n": 2, "votes": {choice: 2}, "by": None}
    for aspect in ASPECTS
    for choice in "AB"
}
ANSWERS = {
    key: {"choice": key[1], "inconsistent": False, "orders": {"as_stored": [key[1]], "swapped": [key[1]]}}
    for key in LABELS
}
COMBINED = "weighted:" + ",".join(f"{aspect}={place + 1}" for place, aspect in enumerate(ASPECTS))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000)
    arguments = parser.parse_args()
    comparisons = [comparison(number) for number in range(arguments.rows)]
    rows_by_kind = {
        RowKind.VERDICTS: [verdict(number) for number in range(arguments.rows)],
        RowKind.SCORES: [score(number) for number in range(arguments.rows)],
    }
    results = {}
    for export_format in EXPORT_FORMATS.values():
        if export_format.needs is RowKind.TABLES:  # its rows are files
            continue
        for name, options in asked_of(export_format):
            results[name] = timed(export_format, rows_by_kind.get(export_format.needs, comparisons), options)
    print(json.dumps({"rows": arguments.rows, "rows_per_second": results}, indent=1))


def asked_of(export_format: ExportFormat) -> Iterator[tuple[str, ExportOptions]]:
    initial = {setting.name: setting.initial for setting in export_format.settings}
    if not export_format.wants_choice:
        yield export_format.name, ExportOptions(settings=initial)
        return
    yield export_format.name, ExportOptions(aspect="factuality", settings=initial)
    if not export_format.one_aspect:
        yield f"{export_format.name}, weighted", ExportOptions(combine=COMBINED, settings=initial)


def timed(export_format: ExportFormat, rows: list[dict[str, Any]], options: ExportOptions) -> dict[str, int]:
    for _ in export_format.write(rows[:1], RATERS, options, ExportTally()):
        pass  # what it imports is imported
    began = process_time()
    written = sum(len(block) for block in export_format.write(rows, RATERS, options, ExportTally()))
    return {"rows": round(len(rows) / (process_time() - began)), "bytes_a_row": written // len(rows)}


def comparison(number: int) -> dict[str, Any]:
    choice = "AB"[number % 2]
    review = {"first": choice, "final": choice, "note": "", "reason": None}
    return {
        "query_id": f"q{number}",
        "cluster": f"q{number}",
        "category": "talk",
        "query": f"Why {number}?",
        "messages": None,
        "context": None,
        "reference": None,
        "candidate_a": "alpha",
        "response_a": f"{number} {WORDS}",
        "candidate_b": "beta",
        "response_b": f"{WORDS} {number}",
        "metadata": {},
        "labels": {aspect: LABELS[aspect, choice] for aspect in ASPECTS},
        "adjudications": {},
        "comments": [],
        "skipped": [],
        "gold": [],
        "judges": [
            {
                "judge": "gpt",
                "kind": "llm",
                "model": "gpt",
                "rubric": "six-aspect 1",
                "choices": {aspect: ANSWERS[aspect, choice] for aspect in ASPECTS},
                "rationales": {"as_stored": [WORDS[:200]], "swapped": [WORDS[:200]]},
                "failures": {},
            }
        ],
        "people": [
            {
                "rater": "ann",
                "rubric": "six-aspect 1",
                "state": "final",
                "shown": "swapped",
                "note": "",
                "blind": True,
                "reveal": "blind",
                "judge_first": False,
                "judge_shown": None,
                "awaits_judge": False,
                "picked_by": "random",
                "round": None,
                "probability": 1.0,
                "calibration": False,
                "active_ms": 1000,
                "choices": {aspect: dict(review) for aspect in ASPECTS},
                "spans": [],
            }
        ],
    }


def verdict(number: int) -> dict[str, Any]:
    return {
        **shared(number),
        "candidate_a": "alpha",
        "candidate_b": "beta",
        "choice": "A",
        "shown_swapped": True,
        "stage": "first",
        "final_choice": "A",
        "blind": True,
    }


def score(number: int) -> dict[str, Any]:
    return {
        **shared(number),
        "candidate": "alpha",
        "value": 3.5,
        "stage": "final",
        "final_value": 3.5,
        "lower_is_better": False,
        "margin": 0.0,
    }


def shared(number: int) -> dict[str, Any]:
    return {
        "query_id": f"q{number}",
        "rater": "gpt",
        "rater_kind": "judge",
        "aspect": "clarity",
        "sample": 0,
        "rationale": WORDS[:200],
        "note": "",
        "created_at": "2026-01-31T12:00:00+00:00",
        "rubric": "six-aspect 1",
        "judge_kind": "llm",
        "model": "gpt",
    }


if __name__ == "__main__":
    main()
