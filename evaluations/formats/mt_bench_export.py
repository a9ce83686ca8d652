"""Verdicts as MT-bench has them: judges' in both orders, or people's votes.

A judge's file is a ``model_judgment`` of pairs: ``g1`` was asked with ``model_1`` first, ``g2`` with ``model_2`` first;
the winner of either is ``model_1``, ``model_2``, ``tie`` or ``error``. People's votes have the layout of the published
human judgments. MT-bench has one verdict for a pair, so both files are about one aspect.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from evaluations.domain.choices import FLIPPED_CHOICES, Choice, ShownOrder
from evaluations.formats.export_format import ExportFormat, RowKind
from evaluations.formats.exported_rows import ExportedJudge, ExportedPerson, ExportedRow, conversation_with_response
from evaluations.formats.jsonl_export import encode_line
from evaluations.formats.preferences import WITHOUT_VOTE, ExportCounts, counted_votes

JUDGES_WINNER: Final = {Choice.A: "model_1", Choice.B: "model_2", Choice.TIE: "tie", Choice.BOTH_BAD: "tie"}
PERSONS_WINNER: Final = {Choice.A: "model_a", Choice.B: "model_b", Choice.TIE: "tie", Choice.BOTH_BAD: "tie (bothbad)"}
ERROR: Final = "error"
BOTH_ORDERS: Final = (ShownOrder.AS_STORED, ShownOrder.SWAPPED)


def mt_bench_judgment_lines(rows: Iterable[ExportedRow], aspect: str, counts: ExportCounts) -> Iterator[bytes]:
    """A line for each judge and sample that was asked in both orders; what was asked in one is left out, and counted.

    MT-bench has no "both bad": they are ties here, and counted as such.
    """
    for row in rows:
        for judge in row["judges"]:
            for record in judge_judgments(row, judge, aspect, counts):
                counts.rows += 1
                yield encode_line(record)


def judge_judgments(
    row: ExportedRow, judge: ExportedJudge, aspect: str, counts: ExportCounts
) -> Iterator[Mapping[str, Any]]:
    judged = judge["choices"].get(aspect)
    failures = sum(judge["failures"].values())
    if judged is None:
        counts.excluded["failed_in_both_orders" if failures else "judge_said_nothing"] += 1
        return
    if "scores" in judged:
        counts.excluded["derived_from_scores"] += 1
        return
    orders = [list(judged["orders"].get(order, ())) for order in BOTH_ORDERS]
    samples = max(map(len, orders))
    # Where an order that was asked has no answer there is no choice: it failed, or is not answered yet.
    if not all(orders) and (judged["choice"] or not failures):
        counts.excluded["asked_in_one_order"] += samples or 1
        return
    texts = judge["choices"][aspect].get("rationales") or judge["rationales"]
    rationales = [list(texts.get(order, ())) for order in BOTH_ORDERS]
    errors = 0
    for at in range(samples):
        pair = [choices[at] if at < len(choices) else None for choices in orders]
        if None in pair and not failures:
            counts.excluded["asked_in_one_order"] += 1
            continue
        if not any(pair):
            continue
        errors += None in pair
        counts.noted["both_bad_as_tie"] += pair.count(Choice.BOTH_BAD)
        sample_rationales = [texts[at] if at < len(texts) else "" for texts in rationales]
        yield judgment_record(row, judge, pair, sample_rationales)
    if (failed_twice := (failures - errors) // 2) > 0:
        counts.excluded["failed_in_both_orders"] += failed_twice


def judgment_record(
    row: ExportedRow, judge: ExportedJudge, choices: Sequence[str | None], rationales: Sequence[str]
) -> dict[str, Any]:
    question, turn = question_and_turn(row)
    return {
        "query_id": row["query_id"],
        "question_id": question,
        "model_1": row["candidate_a"],
        "model_2": row["candidate_b"],
        "g1_winner": JUDGES_WINNER[Choice(choices[0])] if choices[0] else ERROR,
        "g2_winner": JUDGES_WINNER[Choice(choices[1])] if choices[1] else ERROR,
        "judge": [judge["judge"], judge["rubric"] or ""],
        "g1_user_prompt": "",
        "g1_judgment": rationales[0],
        "g2_user_prompt": "",
        "g2_judgment": rationales[1],
        "turn": turn,
        "tstamp": 0,
    }


def mt_bench_vote_lines(rows: Iterable[ExportedRow], aspect: str, counts: ExportCounts) -> Iterator[bytes]:
    """A line for each vote of a person: model_a is what stood on the left, where that is known."""
    for row in rows:
        for person, choice in counted_votes(row["people"], aspect, counts):
            counts.rows += 1
            yield encode_line(vote_record(row, person, Choice(str(choice["final"]))))


def vote_record(row: ExportedRow, person: ExportedPerson, choice: Choice) -> dict[str, Any]:
    swapped = person["shown"] == ShownOrder.SWAPPED
    left, right = ("b", "a") if swapped else ("a", "b")
    shown_choice = FLIPPED_CHOICES[choice] if swapped else choice
    question, turn = question_and_turn(row)
    return {
        "query_id": row["query_id"],
        "question_id": question,
        "model_a": row[f"candidate_{left}"],  # type: ignore[literal-required]
        "model_b": row[f"candidate_{right}"],  # type: ignore[literal-required]
        "winner": PERSONS_WINNER[shown_choice],
        "judge": person["rater"],
        "conversation_a": conversation_with_response(row, row[f"response_{left}"]),  # type: ignore[literal-required]
        "conversation_b": conversation_with_response(row, row[f"response_{right}"]),  # type: ignore[literal-required]
        "turn": turn,
        "shown_swapped": swapped if person["shown"] in BOTH_ORDERS else None,
    }


def question_and_turn(row: ExportedRow) -> tuple[int | str, int]:
    """Question and turn as MT-bench counts them: ``81`` is question 81, ``81-2`` its second turn.

    So is ``writing-2`` of ``writing`` where the user speaks twice. A query that has another key is a question of its
    own; its turn is how often the user speaks, so that no reader cuts the conversation before what was judged.
    """
    key = row["query_id"]
    question, _, turn = key.rpartition("-")
    turns = sum(message["role"] == "user" for message in conversation_with_response(row, row["response_a"]))
    if is_digits(turn) and int(turn) > 1 and (is_digits(question) or (question and int(turn) == turns)):
        return (int(question) if is_digits(question) else question), int(turn)
    return (int(key) if is_digits(key) else key), turns


def is_digits(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 16 and str(int(text)) == text


MT_BENCH_FORMATS: Final = (
    ExportFormat(
        name="mt-bench",
        title="MT-bench judgments",
        purpose="each judge’s verdict in both orders, as in FastChat",
        ending="jsonl",
        write=lambda rows, raters, options, tally: mt_bench_judgment_lines(rows, options.aspect, tally),
        needs=RowKind.EVERYTHING,
        wants_choice=True,
        one_aspect=True,
        reasons={
            "judge_said_nothing": "verdicts without this aspect",
            "failed_in_both_orders": "failures in both orders",
            "asked_in_one_order": "verdicts in one or an unknown order",
            "derived_from_scores": "verdicts derived from scores",
        },
    ),
    ExportFormat(
        name="mt-bench-human",
        title="MT-bench human votes",
        purpose="each reviewer’s vote, as in the published human judgments",
        ending="jsonl",
        write=lambda rows, raters, options, tally: mt_bench_vote_lines(rows, options.aspect, tally),
        needs=RowKind.EVERYTHING,
        wants_choice=True,
        one_aspect=True,
        reasons=WITHOUT_VOTE,
    ),
)
