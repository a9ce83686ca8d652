"""Rows of an export, for tests of the formats: little is said, everything stands there."""

from typing import Any

from evaluations.formats.exported import ExportedRow, Raters

RATERS = Raters(aspects=["safety", "clarity"], people=["ann"], judges=["gpt"], gold=["expert"])
TURNS = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi."},
    {"role": "user", "content": "And now?"},
]
SEVERAL = [
    {"role": "assistant", "content": "First."},
    {"role": "user", "content": "Go on."},
    {"role": "assistant", "content": "Second."},
]


def label(choice: str | None, source: str = "majority", **votes: int) -> Any:
    counted = votes or ({choice: 2} if choice else {"A": 1, "B": 1})
    return {"choice": choice, "source": source, "n": sum(counted.values()), "votes": counted, "by": None}


def labelled(choice: str | None, **given: Any) -> ExportedRow:
    return row(labels={"safety": label(choice)}, **given)


def row(**given: Any) -> ExportedRow:
    plain: dict[str, Any] = {
        "query_id": "q1",
        "cluster": "q1",
        "category": "talk",
        "query": "Why?",
        "messages": None,
        "context": None,
        "reference": None,
        "candidate_a": "alpha",
        "response_a": "Because.",
        "candidate_b": "beta",
        "response_b": "No idea.",
        "metadata": {},
        "labels": {},
        "adjudications": {},
        "comments": [],
        "skipped": [],
        "gold": [],
        "judges": [],
        "people": [],
    }
    return {**plain, **given}  # type: ignore[typeddict-item]


def person(choice: str | None, **given: Any) -> Any:
    said = {"first": choice, "final": choice, "note": "", "reason": None}
    plain = {"rater": "ann", "rubric": None, "state": "final", "shown": "as_stored", "calibration": False, "note": ""}
    return {**plain, "choices": {"safety": said}, "spans": [], **given}


def judge(choice: str | None, **given: Any) -> Any:
    orders = {"as_stored": [choice], "swapped": [choice]} if choice else {}
    said = {"choice": choice, "inconsistent": False, "orders": orders}
    plain = {"judge": "gpt", "kind": "llm", "model": "gpt", "rubric": "own 1", "rationales": {}, "failures": {}}
    return {**plain, "choices": {"safety": said} if choice else {}, **given}
