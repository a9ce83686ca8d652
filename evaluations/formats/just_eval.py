"""just-eval: responses, a judge's choices of two on one or several aspects, and its scores of single responses.

Every item is a query under an id made of its words: the files count their items from 0, each for itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from evaluations.domain import (
    CallState,
    ComparisonRow,
    Notice,
    NoticeKind,
    QueryPart,
    RaterKind,
    Reading,
    ResponseRow,
    Row,
    ScoreRow,
    Shown,
    VerdictRow,
)
from evaluations.formats.candidates import candidate_of
from evaluations.formats.conversing import asked, candidate, query_of, remainder, unread
from evaluations.formats.messages import response
from evaluations.formats.rows import DEFAULT_ASPECT
from evaluations.formats.streams import Record
from evaluations.formats.values import (
    RowRefused,
    aspect_key,
    optional_text,
    required_name,
    required_number,
    required_text,
)
from evaluations.formats.wording import parse_label, with_strength

# What is asked of two responses in the mode of several aspects: a failure is one on all of them.
ASPECTS: Final = ("helpfulness", "clarity", "factuality", "depth", "engagement")
PAIRWISE: Final = "pairwise"
REWARD: Final = "reward"  # the mode in which a reward model, and no LLM, gives the score
NO_VALUE: Final = ("", "n/a", "na", "none")
OF_BOTH: Final = ("id", "input", "source_id", "eval_config", "parsed_result")
OF_PAIR: Final = (*OF_BOTH, "output_A", "output_B", "generator_A", "generator_B")
OF_SCORES: Final = (*OF_BOTH, "output_cand", "generator_cand")
KNOWN_RESPONSES: Final = frozenset({"id", "instruction", "output", "generator"})


def response_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    values = record.values
    name, other = candidate_of(record, reading, "generator")
    return (
        ResponseRow(
            line=record.line,
            query=query_part(values, "instruction", reading),
            candidate=name,
            overruled=other,
            response=response(values, "output"),
            metadata=remainder(values, KNOWN_RESPONSES),
        ),
    )


def query_part(values: Mapping[str, Any], field: str, reading: Reading) -> QueryPart:
    """Without a category: only the files of responses name a data set, and all must speak of the same query."""
    return query_of(asked(required_text(values, field)), reading)


def pair_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    """A comparison and what the judge chose on each aspect; A stood first in what it was shown."""
    values = record.values
    comparison = ComparisonRow(
        line=record.line,
        query=query_part(values, "input", reading),
        candidate_a=required_name(values, "generator_A"),
        response_a=response(values, "output_A"),
        candidate_b=required_name(values, "generator_B"),
        response_b=response(values, "output_B"),
    )
    if comparison.candidate_a == comparison.candidate_b:
        raise RowRefused(f"both generators are “{comparison.candidate_a}”: give the two sides different names")
    judge = judge_of(values, reading)
    verdicts = [
        VerdictRow(
            line=record.line,
            query_key=comparison.query.key,
            candidate_a=comparison.candidate_a,
            candidate_b=comparison.candidate_b,
            rater=judge,
            rater_kind=reading.rater_kind or RaterKind.JUDGE,
            aspect=aspect,
            choice=choice,
            shown=Shown.AS_STORED,
            rationale=rationale,
            note=with_strength("", strength),
        )
        for aspect, choice, strength, rationale in chosen(values)
    ]
    notices = *not_understood(values, record.line), *unread(values, OF_PAIR, record.line)
    return comparison, *verdicts, *notices


def chosen(values: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Aspect, choice, how strongly, and the reason.

    Where no reply could be read the judge failed on all that it was asked.
    """
    is_single = mode_of(values) == PAIRWISE
    parsed = values.get("parsed_result")
    if not isinstance(parsed, dict) or not parsed:
        for aspect in (DEFAULT_ASPECT,) if is_single else ASPECTS:
            yield aspect, CallState.UNREADABLE, "", ""
        return
    answers = {DEFAULT_ASPECT: parsed} if is_single else parsed
    # A judge that leaves one of them out has failed on all: a failure is of the whole call.
    labels = {name: parse_label(word_of(answer, "preference")) for name, answer in answers.items()}
    for name, answer in answers.items():
        choice, strength = str(CallState.UNREADABLE), ""
        if (label := labels[name]) and None not in labels.values():
            choice, strength = label.choice, label.strength
        yield aspect_key({"aspect": name}, DEFAULT_ASPECT), choice, strength, reason_of(answer)


def not_understood(values: Mapping[str, Any], line: int) -> Iterator[Notice]:
    """Preferences whose words are not known: such a reply is unreadable."""
    parsed = values.get("parsed_result")
    answers = parsed if isinstance(parsed, dict) else {}
    for name, answer in ({DEFAULT_ASPECT: answers} if mode_of(values) == PAIRWISE else answers).items():
        word = word_of(answer, "preference")
        if word and not parse_label(word):
            yield Notice(line, NoticeKind.NOT_UNDERSTOOD, word, name)


def score_rows(record: Record, reading: Reading) -> tuple[Row, ...]:
    """A response, and the judge's number for each aspect. Where no reply could be read the judge has failed."""
    values = record.values
    query = query_part(values, "input", reading)
    name, other = candidate_of(record, reading, "generator_cand")
    row = ResponseRow(record.line, query, name, response(values, "output_cand"), overruled=other)
    judge = REWARD if mode_of(values) == REWARD and not reading.rater else judge_of(values, reading)
    failure = ScoreRow(
        line=record.line,
        query_key=query.key,
        candidate=name,
        rater=judge,
        rater_kind=reading.rater_kind or RaterKind.JUDGE,
        aspect=DEFAULT_ASPECT,
        value=None,
        failure=CallState.UNREADABLE,
    )
    scores = [
        replace(
            failure,
            aspect=aspect_key({"aspect": aspect}, DEFAULT_ASPECT),
            value=required_number(answer, "score"),
            rationale=reason_of(answer),
            failure="",
        )
        for aspect, answer in scored(values)
    ]
    is_judge = failure.rater_kind == RaterKind.JUDGE
    answers = answers_in(values)
    unscored = [aspect for aspect, answer in answers.items() if word_of(answer, "score") in NO_VALUE]
    return (
        row,
        *(scores or ([failure] if is_judge and not answers else [])),
        *(Notice(record.line, NoticeKind.NO_ANSWER, aspect, aspect) for aspect in unscored),
        *unread(values, OF_SCORES, record.line),
    )


def scored(values: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for aspect, answer in answers_in(values).items():
        if word_of(answer, "score") not in NO_VALUE:
            yield aspect, answer


def answers_in(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """By aspect what the judge answered; nothing where that could not be read."""
    if mode_of(values) == REWARD:
        return {REWARD: values["result"]} if isinstance(values.get("result"), dict) else {}
    parsed = values.get("parsed_result")
    return parsed if isinstance(parsed, dict) else {}


def word_of(answer: object, field: str) -> str:
    return optional_text(answer, field).strip().lower() if isinstance(answer, dict) else ""


def reason_of(answer: object) -> str:
    return optional_text(answer, "reason") if isinstance(answer, dict) else ""


def mode_of(values: Mapping[str, Any]) -> str:
    config = values.get("eval_config")
    return str(config.get("mode", "")) if isinstance(config, dict) else ""


def judge_of(values: Mapping[str, Any], reading: Reading) -> str:
    config = values.get("eval_config")
    name = reading.rater or (candidate(config, "gpt") if isinstance(config, dict) else "")
    if not name:
        raise RowRefused("eval_config does not name the judge: give it a name for the whole file")
    return name
