"""just-eval: responses, choices of a judge on several aspects, and its scores of single responses.

A query's id is a hash of its words, because each file numbers its items from 0.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from evaluations.domain.choices import ShownOrder
from evaluations.domain.files import FileFormat, FileRow, Notice, NoticeKind, QueryPart, ReadOptions, ScoreRow
from evaluations.domain.judges import CallState
from evaluations.domain.roles import RaterKind
from evaluations.formats.chat_messages import parse_response
from evaluations.formats.conversations import (
    first_candidate_name,
    make_comparison,
    make_query,
    make_response,
    make_verdict,
    unread_column_notices,
    user_turn,
)
from evaluations.formats.import_format import COMPARISONS, SCORES, VERDICTS, ImportFormat
from evaluations.formats.label_parser import parse_label
from evaluations.formats.native_rows import DEFAULT_ASPECT
from evaluations.formats.record_streams import Record
from evaluations.formats.values import (
    RowRefused,
    aspect_key,
    optional_text,
    required_name,
    required_number,
    required_text,
)

# The aspects of the mode with several aspects; a failure is one on all of them.
ASPECTS: Final = ("helpfulness", "clarity", "factuality", "depth", "engagement")
PAIRWISE: Final = "pairwise"
REWARD: Final = "reward"  # the mode in which a reward model, and no LLM, gives the score
NO_VALUE: Final = ("", "n/a", "na", "none")
OF_BOTH: Final = ("id", "input", "source_id", "eval_config", "parsed_result")
OF_PAIR: Final = (*OF_BOTH, "output_A", "output_B", "generator_A", "generator_B")
OF_SCORES: Final = (*OF_BOTH, "output_cand", "generator_cand")
KNOWN_RESPONSES: Final = frozenset({"id", "instruction", "output", "generator"})


def just_eval_response_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    query, response = just_eval_query(record.values, "instruction", options), parse_response(record.values, "output")
    return (make_response(record, options, query, "generator", response, KNOWN_RESPONSES),)


def just_eval_query(values: Mapping[str, Any], field: str, options: ReadOptions) -> QueryPart:
    """The query, without a category, which only files of responses have: queries must be equal in all files."""
    return make_query(user_turn(required_text(values, field)), options)


def just_eval_pair_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """A comparison and what the judge chose on each aspect; A stood first in what it was shown."""
    values = record.values
    names = required_name(values, "generator_A"), required_name(values, "generator_B")
    if names[0] == names[1]:
        raise RowRefused(f"both generators are “{names[0]}”. Give the two models different names")
    responses = [parse_response(values, f"output_{side}") for side in "AB"]
    comparison = make_comparison(record, just_eval_query(values, "input", options), names, responses)
    judge = just_eval_judge(values, options)
    verdicts = [
        make_verdict(
            comparison,
            judge,
            options.rater_kind or RaterKind.JUDGE,
            choice,
            aspect=aspect,
            strength=strength,
            shown=ShownOrder.AS_STORED,
            rationale=rationale,
        )
        for aspect, choice, strength, rationale in just_eval_choices(values)
    ]
    notices = *unknown_preference_notices(values, record.line), *unread_column_notices(values, OF_PAIR, record.line)
    return comparison, *verdicts, *notices


def just_eval_choices(values: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Aspect, choice, how strongly, and the reason; a failure on each aspect where no reply could be read."""
    is_single = prompt_mode(values) == PAIRWISE
    parsed = values.get("parsed_result")
    if not isinstance(parsed, dict) or not parsed:
        for aspect in (DEFAULT_ASPECT,) if is_single else ASPECTS:
            yield aspect, CallState.UNREADABLE, "", ""
        return
    answers = {DEFAULT_ASPECT: parsed} if is_single else parsed
    # A judge that leaves one of them out has failed on all: a failure is of the whole call.
    labels = {name: parse_label(answer_word(answer, "preference")) for name, answer in answers.items()}
    for name, answer in answers.items():
        choice, strength = str(CallState.UNREADABLE), ""
        if (label := labels[name]) and None not in labels.values():
            choice, strength = label.choice, label.strength
        yield aspect_key({"aspect": name}, DEFAULT_ASPECT), choice, strength, answer_reason(answer)


def unknown_preference_notices(values: Mapping[str, Any], line: int) -> Iterator[Notice]:
    """Preferences whose words are not known: such a reply is unreadable."""
    parsed = values.get("parsed_result")
    answers = parsed if isinstance(parsed, dict) else {}
    for name, answer in ({DEFAULT_ASPECT: answers} if prompt_mode(values) == PAIRWISE else answers).items():
        word = answer_word(answer, "preference")
        if word and not parse_label(word):
            yield Notice(line, NoticeKind.NOT_UNDERSTOOD, word, name)


def just_eval_score_rows(record: Record, options: ReadOptions) -> tuple[FileRow, ...]:
    """A response, and the judge's number for each aspect. Where no reply could be read the judge has failed."""
    values = record.values
    query = just_eval_query(values, "input", options)
    row = make_response(record, options, query, "generator_cand", parse_response(values, "output_cand"))
    judge = REWARD if prompt_mode(values) == REWARD and not options.rater else just_eval_judge(values, options)
    failure = ScoreRow(
        line=record.line,
        query_key=query.key,
        candidate=row.candidate,
        rater=judge,
        rater_kind=options.rater_kind or RaterKind.JUDGE,
        aspect=DEFAULT_ASPECT,
        value=None,
        failure=CallState.UNREADABLE,
    )
    answers = just_eval_answers(values)
    scores = [
        replace(
            failure,
            aspect=aspect_key({"aspect": aspect}, DEFAULT_ASPECT),
            value=required_number(answer, "score"),
            rationale=answer_reason(answer),
            failure="",
        )
        for aspect, answer in answers.items()
        if answer_word(answer, "score") not in NO_VALUE
    ]
    is_judge = failure.rater_kind == RaterKind.JUDGE
    unscored = [aspect for aspect, answer in answers.items() if answer_word(answer, "score") in NO_VALUE]
    return (
        row,
        *(scores or ([failure] if is_judge and not answers else [])),
        *(Notice(record.line, NoticeKind.NO_ANSWER, aspect, aspect) for aspect in unscored),
        *unread_column_notices(values, OF_SCORES, record.line),
    )


def just_eval_answers(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The judge's answers by aspect; empty where its reply could not be read."""
    if prompt_mode(values) == REWARD:
        return {REWARD: values["result"]} if isinstance(values.get("result"), dict) else {}
    parsed = values.get("parsed_result")
    return parsed if isinstance(parsed, dict) else {}


def answer_word(answer: object, field: str) -> str:
    return optional_text(answer, field).strip().lower() if isinstance(answer, dict) else ""


def answer_reason(answer: object) -> str:
    return optional_text(answer, "reason") if isinstance(answer, dict) else ""


def prompt_mode(values: Mapping[str, Any]) -> str:
    config = values.get("eval_config")
    return str(config.get("mode", "")) if isinstance(config, dict) else ""


def just_eval_judge(values: Mapping[str, Any], options: ReadOptions) -> str:
    config = values.get("eval_config")
    name = options.rater or (first_candidate_name(config, "gpt") if isinstance(config, dict) else "")
    if not name:
        raise RowRefused("eval_config does not name the judge. Set a name for the whole file")
    return name


JUST_EVAL_FORMATS: Final = (
    ImportFormat(
        FileFormat.JUST_EVAL,
        (VERDICTS, COMPARISONS),
        ("input", "output_A", "output_B", "generator_A", "generator_B", "eval_config"),
        just_eval_pair_rows,
    ),
    ImportFormat(
        FileFormat.JUST_EVAL,
        (SCORES, COMPARISONS),
        ("input", "output_cand", "generator_cand", "eval_config"),
        just_eval_score_rows,
    ),
    ImportFormat(
        FileFormat.JUST_EVAL,
        (COMPARISONS,),
        ("id", "instruction", "source_id", "output", "generator"),
        just_eval_response_rows,
        needs_pairing=True,
    ),
)
