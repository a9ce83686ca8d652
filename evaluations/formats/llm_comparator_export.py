"""Comparisons as one JSON document for LLM Comparator.

The tool's scores go from 1.5 (A much better) to −1.5; a choice is written as 1, 0 or −1, which the tool shows as
"A is better", "same" and "B is better". The score is the evaluation's label; the raters' verdicts are its ratings.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.preferences import NoPreference, PreferenceRule
from evaluations.domain.texts import messages_to_text
from evaluations.formats.export_format import ExportFormat, RowKind
from evaluations.formats.exported_rows import ExportedRow, prompt_messages, response_messages
from evaluations.formats.jsonl_export import fast_encode
from evaluations.formats.llm_comparator import BOTH_ARE_BAD
from evaluations.formats.preferences import WITHOUT_VOTE, ExportCounts, counted_votes, decide_comparison

SCORE: Final = {Choice.A: 1.0, Choice.B: -1.0, Choice.TIE: 0.0, Choice.BOTH_BAD: 0.0}
RATING: Final = {
    Choice.A: "A is better",
    Choice.B: "B is better",
    Choice.TIE: "same",
    Choice.BOTH_BAD: BOTH_ARE_BAD,
}
FLIPPED: Final = {ShownOrder.AS_STORED: False, ShownOrder.SWAPPED: True}
NONE: Final = "–"  # what the tool shows in a category where there is nothing
SEVERAL: Final = ("A: the first by name", "B: the second by name")


def llm_comparator_lines(
    rows: Iterable[ExportedRow], aspects: Sequence[str], rule: PreferenceRule, counts: ExportCounts
) -> Iterator[bytes]:
    """One document. Every comparison is in it; without a choice its score is null.

    The tool compares two models. Where the comparisons are of several pairs, the models are "the first" and "the
    second by name", and a field of each comparison names them: which they are is known after the last one, so
    ``models`` comes last.
    """
    named = list(rule.aspects or aspects)
    metadata = {"source_path": f"judgeweb: {rule.name}", "custom_fields_schema": custom_fields_schema(named)}
    yield b'{"metadata":' + fast_encode(metadata).encode()
    yield b',\n"examples":['
    pairs: set[tuple[str, str]] = set()
    between = b"\n"
    for row in rows:
        pairs.add((row["candidate_a"], row["candidate_b"]))
        counts.rows += 1
        yield between + fast_encode(llm_comparator_example(row, named, rule, counts)).encode()
        between = b",\n"
    models = next(iter(pairs)) if len(pairs) == 1 else SEVERAL
    counts.noted["pairs_of_candidates"] = len(pairs)
    yield b'\n],\n"models":' + fast_encode([{"name": name} for name in models]).encode() + b"}\n"


def custom_fields_schema(aspects: Sequence[str]) -> list[dict[str, str]]:
    return [
        {"name": "query_id", "type": "string"},
        {"name": "candidate", "type": "per_model_category"},
        {"name": "label_source", "type": "category"},
        *({"name": f"label: {aspect}", "type": "category"} for aspect in aspects),
        {"name": "rater", "type": "per_rating_string"},
    ]


def llm_comparator_example(
    row: ExportedRow, named: Sequence[str], rule: PreferenceRule, counts: ExportCounts
) -> dict[str, Any]:
    decided = decide_comparison(row, rule, named)
    if isinstance(decided, NoPreference):
        counts.noted[f"without_score:{decided}"] += 1
        score, source = None, NONE
    else:
        counts.noted["both_bad_as_tie"] += decided.choice == Choice.BOTH_BAD
        score, source = SCORE[decided.choice], decided.sources
    return {
        "input_text": messages_to_text(prompt_messages(row)),
        "tags": [row["category"]] if row["category"] else [],
        "output_text_a": messages_to_text(response_messages(row["response_a"])),
        "output_text_b": messages_to_text(response_messages(row["response_b"])),
        "score": score,
        "individual_rater_scores": [
            rating for aspect in named for rating in rater_ratings(row, aspect, len(named) > 1, counts)
        ],
        "custom_fields": {
            "query_id": row["query_id"],
            "candidate": [row["candidate_a"], row["candidate_b"]],
            "label_source": source,
            **{f"label: {aspect}": label_phrase(row, aspect) for aspect in named},
        },
    }


def label_phrase(row: ExportedRow, aspect: str) -> str:
    label = row["labels"].get(aspect)
    return (label["choice"] if label else None) or NONE


def rater_ratings(row: ExportedRow, aspect: str, several: bool, counts: ExportCounts) -> Iterator[dict[str, Any]]:
    """Ratings of judges by order and sample, of people and of gold, without failures."""
    of = f" ({aspect})" if several else ""
    for judge in row["judges"]:
        judged = judge["choices"].get(aspect)
        if judged is None:
            continue
        rationales = judged.get("rationales") or judge["rationales"]
        for order, choices in sorted(judged["orders"].items()):
            texts = rationales.get(order, ())
            for at, choice in enumerate(choices):
                if choice is None:
                    continue
                rationale = texts[at] if at < len(texts) else ""
                yield rating_record(f"{judge['judge']}{of}", choice, FLIPPED.get(ShownOrder(order)), rationale)
        if "scores" in judged and judged["choice"]:
            yield rating_record(f"{judge['judge']}{of}", judged["choice"], None, "")
    for person, vote in counted_votes(row["people"], aspect, counts):
        flipped = FLIPPED.get(ShownOrder(person["shown"]))
        rationale = vote["note"] or vote.get("rationale", "")
        yield rating_record(f"{person['rater']}{of}", str(vote["final"]), flipped, rationale)
    for gold in row["gold"]:
        if aspect in gold["choices"]:
            yield rating_record(f"{gold['rater']}{of}", gold["choices"][aspect], None, "")


def rating_record(rater: str, choice: str, flipped: bool | None, rationale: str) -> dict[str, Any]:
    return {
        "score": SCORE[Choice(choice)],
        "rating_label": RATING[Choice(choice)],
        "is_flipped": flipped,
        "rationale": rationale,
        "custom_fields": {"rater": rater},
    }


LLM_COMPARATOR_FORMAT: Final = ExportFormat(
    name="llm-comparator",
    title="LLM Comparator",
    purpose="JSON file for the LLM Comparator tool",
    ending="json",
    write=lambda rows, raters, options, tally: llm_comparator_lines(
        rows, raters.aspects, options.preference_rule(raters), tally
    ),
    needs=RowKind.EVERYTHING,
    wants_choice=True,
    reasons=WITHOUT_VOTE,
)
