"""Single responses that are good or bad, as KTO is trained with: TRL's rows and LLaMA-Factory's."""

from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from functools import partial
from typing import Any, Final

from evaluations.domain import Messages, RaterKind, Reading, ResponseRow, Row, ScoreRow
from evaluations.formats.candidates import candidate_of
from evaluations.formats.chosen_rejected import (
    GOLD,
    IDS,
    OF_EXPORTS,
    OF_QUERY,
    PROMPTS,
    TELLING,
    encoded_columns,
    prompt_of,
    used_of,
    with_decoded,
    with_system,
)
from evaluations.formats.conversing import candidate, key_of, left_out, query_of, remainder, said
from evaluations.formats.file_sample import FileSample, mostly
from evaluations.formats.messages import optional_messages, response
from evaluations.formats.streams import Record
from evaluations.formats.values import MAX_CATEGORY, RowRefused, optional_text

# What KTO calls the two kinds of response. A number: 1 or 0.
ASPECT: Final = "desirable"
LABELS: Final = {"true": 1.0, "false": 0.0}
CONVERSATIONS: Final = ("conversations", "messages")
ANSWERS: Final = ("completion", "output")
KNOWN: Final = frozenset(
    {*IDS, *OF_QUERY, *TELLING, *CONVERSATIONS, "completion", "output", "label", "kto_tag", "model", "choice"}
)


def has_labels(sample: FileSample) -> bool:
    """Whether labels are true or false: what 0, 1 or other words mean is asked."""
    return mostly(label_of(value) is not None for value in sample.values("label"))


def has_tags(sample: FileSample) -> bool:
    return mostly(label_of(value) is not None for value in sample.values("kto_tag"))


def label_of(value: object) -> float | None:
    return LABELS.get(str(value).strip().lower()) if isinstance(value, (bool, str)) else None


def rows_of_file(sample: FileSample) -> Callable[[Record, Reading], tuple[Row, ...]]:
    """Chat messages that are JSON in cells are so throughout a column; one text that is JSON stays a text."""
    return partial(labelled_rows, encoded=encoded_columns(sample, (*PROMPTS, *CONVERSATIONS, *ANSWERS)))


def labelled_rows(record: Record, reading: Reading, encoded: Set[str] = frozenset()) -> tuple[Row, ...]:
    """A response, and the score 1 where it is good and 0 where it is bad."""
    values = with_decoded(record.values, encoded)
    record = replace(record, values=values)
    field = "kto_tag" if "kto_tag" in values else "label"
    value = label_of(values.get(field))
    if value is None:
        raise RowRefused(f"{field} is “{str(values.get(field))[:40]}” where true or false is expected")
    prompt, answer = parts_of(values)
    words = key_of(prompt)
    query = query_of(
        prompt,
        reading,
        key=candidate(values, *IDS) or words,
        cluster=candidate(values, "cluster") or words,
        reference=optional_text(values, "reference"),
        category=optional_text(values, "category", MAX_CATEGORY),
    )
    name, other = candidate_of(record, reading, "model")
    row = ResponseRow(
        line=record.line,
        query=replace(query, context=optional_text(values, "context") or None),
        candidate=name,
        overruled=other,
        response=answer,
        metadata=remainder(values, KNOWN | used_of(values)),
    )
    score = ScoreRow(
        line=record.line,
        query_key=row.query.key,
        candidate=row.candidate,
        rater=reading.rater or GOLD,
        rater_kind=reading.rater_kind or RaterKind.GOLD,
        aspect=ASPECT,
        value=value,
    )
    return row, score, *left_out(values, OF_EXPORTS if "label_source" in values else (), record.line)


def parts_of(values: Mapping[str, Any]) -> tuple[Messages, Messages]:
    """The prompt and the response, apart or as one conversation that ends with the response."""
    column = next((one for one in CONVERSATIONS if isinstance(values.get(one), list)), None)
    if column and "completion" not in values and "output" not in values:
        messages = optional_messages(values[column], column)
        end = max((number for number, one in enumerate(messages, 1) if one["role"] == "user"), default=0)
        prompt, answer = with_system(values, messages[:end]), said(messages[end:], column)
    else:
        prompt, answer = prompt_of(values), response(values, "completion" if "completion" in values else "output")
    if not prompt or prompt[-1]["role"] != "user":
        raise RowRefused("prompt must end with a turn of the user")
    return prompt, answer
