"""Comparisons for LLM Comparator: one JSON document with two models, which that tool opens as it stands.

Its scores go from 1.5 (A much better) to -1.5; a choice is 1, 0 or -1 here, which it shows as "A is better", "same"
and "B is better". What it is to count is the evaluation's label; what each rater said stands beside it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, cast

from evaluations.domain import Choice, Deciding, NoPreference, Shown, text_of
from evaluations.formats.counted_votes import WITHOUT_VOTE, counted_votes
from evaluations.formats.exported import ExportedRow, Raters
from evaluations.formats.jsonl_out import encode
from evaluations.formats.layouts import prompt_of, turns_of
from evaluations.formats.leaving import Leaving, Needs, Options, Rows, Tally
from evaluations.formats.llm_comparator import BOTH_ARE_BAD
from evaluations.formats.preferred import Account, decided

SCORE: Final = {Choice.A: 1.0, Choice.B: -1.0, Choice.TIE: 0.0, Choice.BOTH_BAD: 0.0}
RATING: Final = {
    Choice.A: "A is better",
    Choice.B: "B is better",
    Choice.TIE: "same",
    Choice.BOTH_BAD: BOTH_ARE_BAD,
}
FLIPPED: Final = {Shown.AS_STORED: False, Shown.SWAPPED: True}
NONE: Final = "–"  # what the tool shows in a category where there is nothing
SEVERAL: Final = ("A: the first by name", "B: the second by name")


def lines(
    rows: Iterable[ExportedRow], aspects: Sequence[str], how: Deciding, account: Account, source: str
) -> Iterator[bytes]:
    """One document. Every comparison is in it; without a choice its score is null.

    The tool compares two models. Where the comparisons are of several pairs, the models are "the first" and "the
    second by name", and a field of each comparison names them: which they are is known after the last one, so
    ``models`` comes last.
    """
    named = list(how.aspects or aspects)
    yield b'{"metadata":' + encode({"source_path": source, "custom_fields_schema": schema(named)}).encode()
    yield b',\n"examples":['
    pairs: set[tuple[str, str]] = set()
    between = b"\n"
    for row in rows:
        pairs.add((row["candidate_a"], row["candidate_b"]))
        account.rows += 1
        yield between + encode(example(row, named, how, account)).encode()
        between = b",\n"
    models = next(iter(pairs)) if len(pairs) == 1 else SEVERAL
    account.noted["pairs_of_candidates"] = len(pairs)
    yield b'\n],\n"models":' + encode([{"name": name} for name in models]).encode() + b"}\n"


def schema(aspects: Sequence[str]) -> list[dict[str, str]]:
    return [
        {"name": "query_id", "type": "string"},
        {"name": "candidate", "type": "per_model_category"},
        {"name": "label_source", "type": "category"},
        *({"name": f"label: {aspect}", "type": "category"} for aspect in aspects),
        {"name": "rater", "type": "per_rating_string"},
    ]


def example(row: ExportedRow, named: Sequence[str], how: Deciding, account: Account) -> dict[str, Any]:
    one = decided(row, how, named)
    if isinstance(one, NoPreference):
        account.noted[f"without_score:{one}"] += 1
        score, source = None, NONE
    else:
        account.noted["both_bad_as_tie"] += one.choice == Choice.BOTH_BAD
        score, source = SCORE[one.choice], one.sources
    return {
        "input_text": text_of(prompt_of(row)),
        "tags": [row["category"]] if row["category"] else [],
        "output_text_a": text_of(turns_of(row["response_a"])),
        "output_text_b": text_of(turns_of(row["response_b"])),
        "score": score,
        "individual_rater_scores": [
            rating for aspect in named for rating in ratings(row, aspect, len(named) > 1, account)
        ],
        "custom_fields": {
            "query_id": row["query_id"],
            "candidate": [row["candidate_a"], row["candidate_b"]],
            "label_source": source,
            **{f"label: {aspect}": label_told(row, aspect) for aspect in named},
        },
    }


def label_told(row: ExportedRow, aspect: str) -> str:
    label = row["labels"].get(aspect)
    return (label["choice"] if label else None) or NONE


def ratings(row: ExportedRow, aspect: str, several: bool, account: Account) -> Iterator[dict[str, Any]]:
    """Each order and sample of a judge, each vote of a person, and gold. Failures have no place among ratings."""
    of = f" ({aspect})" if several else ""
    for judge in row["judges"]:
        said = judge["choices"].get(aspect)
        if said is None:
            continue
        told = said.get("rationales") or judge["rationales"]
        for order, choices in sorted(said["orders"].items()):
            texts = told.get(order, ())
            for at, choice in enumerate(choices):
                if choice is None:
                    continue
                rationale = texts[at] if at < len(texts) else ""
                yield rating(f"{judge['judge']}{of}", choice, FLIPPED.get(Shown(order)), rationale)
        if "scores" in said and said["choice"]:
            yield rating(f"{judge['judge']}{of}", said["choice"], None, "")
    for person, given in counted_votes(row["people"], aspect, account):
        flipped = FLIPPED.get(Shown(person["shown"]))
        rationale = given["note"] or given.get("rationale", "")
        yield rating(f"{person['rater']}{of}", str(given["final"]), flipped, rationale)
    for gold in row["gold"]:
        if aspect in gold["choices"]:
            yield rating(f"{gold['rater']}{of}", gold["choices"][aspect], None, "")


def rating(rater: str, choice: str, flipped: bool | None, rationale: str) -> dict[str, Any]:
    return {
        "score": SCORE[Choice(choice)],
        "rating_label": RATING[Choice(choice)],
        "is_flipped": flipped,
        "rationale": rationale,
        "custom_fields": {"rater": rater},
    }


def written(rows: Rows, raters: Raters, options: Options, tally: Tally) -> Iterator[bytes]:
    how = options.deciding(raters)
    return lines(cast("Iterable[ExportedRow]", rows), raters.aspects, how, tally, f"judgeweb: {how.name}")


FORMAT: Final = Leaving(
    name="llm-comparator",
    title="LLM Comparator",
    purpose="one JSON document that the tool LLM Comparator opens",
    ending="json",
    content_type="application/json",
    write=written,
    needs=Needs.EVERYTHING,
    wants_choice=True,
    reasons=WITHOUT_VOTE,
)
