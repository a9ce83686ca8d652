"""Single responses labelled good or bad, in the layouts of TRL's KTO and of LLaMA-Factory."""

from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from functools import partial
from typing import Any, Final

from evaluations.domain.files import FileFormat, FileRow, ReadOptions, ScoreRow
from evaluations.domain.roles import RaterKind
from evaluations.domain.texts import Messages
from evaluations.formats.chat_messages import parse_optional_messages, parse_response
from evaluations.formats.chosen_rejected import (
    GOLD,
    IDS,
    OF_EXPORTS,
    OF_QUERY,
    PROMPTS,
    TELLING,
    decode_turn_columns,
    encoded_columns,
    preference_prompt,
    preference_query,
    prepend_system,
    prompt_columns,
)
from evaluations.formats.conversations import left_out_notices, make_response, require_response
from evaluations.formats.import_format import COMPARISONS, SCORES, ImportFormat
from evaluations.formats.record_streams import FileSample, Record, fits_mostly
from evaluations.formats.values import RowRefused

# What KTO calls the two kinds of response. A number: 1 or 0.
ASPECT: Final = "desirable"
LABELS: Final = {"true": 1.0, "false": 0.0}
CONVERSATIONS: Final = ("conversations", "messages")
ANSWERS: Final = ("completion", "output")
KNOWN: Final = frozenset(
    {*IDS, *OF_QUERY, *TELLING, *CONVERSATIONS, "completion", "output", "label", "kto_tag", "model", "choice"}
)


def has_boolean_labels(sample: FileSample, column: str) -> bool:
    """Whether labels are true or false. For 0, 1 and other words, the user states the meaning."""
    return fits_mostly(kto_label_score(value) is not None for value in sample.values(column))


def kto_label_score(value: object) -> float | None:
    return LABELS.get(str(value).strip().lower()) if isinstance(value, (bool, str)) else None


def kto_rows_reader(sample: FileSample) -> Callable[[Record, ReadOptions], tuple[FileRow, ...]]:
    """Chat messages that are JSON in cells are so throughout a column; one text that is JSON stays a text."""
    return partial(kto_rows, encoded=encoded_columns(sample, (*PROMPTS, *CONVERSATIONS, *ANSWERS)))


def kto_rows(record: Record, options: ReadOptions, encoded: Set[str] = frozenset()) -> tuple[FileRow, ...]:
    """A response, and the score 1 where it is good and 0 where it is bad."""
    values = decode_turn_columns(record.values, encoded)
    record = replace(record, values=values)
    field = "kto_tag" if "kto_tag" in values else "label"
    value = kto_label_score(values.get(field))
    if value is None:
        raise RowRefused(f"{field} is “{str(values.get(field))[:40]}”; expected true or false")
    prompt, answer = split_prompt_and_completion(values)
    query = preference_query(values, options, prompt)
    row = make_response(record, options, query, "model", answer, KNOWN | prompt_columns(values))
    score = ScoreRow(
        line=record.line,
        query_key=row.query.key,
        candidate=row.candidate,
        rater=options.rater or GOLD,
        rater_kind=options.rater_kind or RaterKind.GOLD,
        aspect=ASPECT,
        value=value,
    )
    return row, score, *left_out_notices(values, OF_EXPORTS if "label_source" in values else (), record.line)


def split_prompt_and_completion(values: Mapping[str, Any]) -> tuple[Messages, Messages]:
    """The prompt and the response, apart or as one conversation that ends with the response."""
    column = next((name for name in CONVERSATIONS if isinstance(values.get(name), list)), None)
    if column and "completion" not in values and "output" not in values:
        messages = parse_optional_messages(values[column], column)
        end = max((number for number, message in enumerate(messages, 1) if message["role"] == "user"), default=0)
        prompt, answer = prepend_system(values, messages[:end]), require_response(messages[end:], column)
    else:
        field = "completion" if "completion" in values else "output"
        prompt, answer = preference_prompt(values), parse_response(values, field)
    if not prompt or prompt[-1]["role"] != "user":
        raise RowRefused("prompt must end with a user turn")
    return prompt, answer


KTO_FORMATS: Final = tuple(
    ImportFormat(
        FileFormat.KTO,
        (COMPARISONS, SCORES),
        (*columns, label),
        kto_rows,
        needs_pairing=True,
        model="model",
        is_match=partial(has_boolean_labels, column=label),
        has_common_columns=True,
        learn_reader=kto_rows_reader,
    )
    for columns, label in (
        (("prompt", "completion"), "label"),
        (("instruction", "output"), "kto_tag"),
        (("conversations",), "kto_tag"),
        (("messages",), "kto_tag"),
    )
)
