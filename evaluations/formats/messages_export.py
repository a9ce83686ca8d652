"""The preferred conversations for supervised fine-tuning, as messages."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from evaluations.domain.preferences import PreferenceRule
from evaluations.formats.export_format import ExportFormat, ExportOptions, ExportRows, ExportTally
from evaluations.formats.exported_rows import ExportedRaters, LabelledRow
from evaluations.formats.jsonl_export import encode_line
from evaluations.formats.preferences import EXCLUSION_REASONS, ExportCounts, choice_columns, preferred_responses
from evaluations.formats.prompt_layouts import conversation_with_response, is_empty_response

EMPTY: Final = "empty_response"


def conversation_lines(
    rows: Iterable[LabelledRow], aspects: Sequence[str], rule: PreferenceRule, counts: ExportCounts
) -> Iterator[bytes]:
    """The preferred conversation of each comparison. An empty response is left out: it would teach silence."""
    for one in preferred_responses(rows, rule, aspects, counts):
        if is_empty_response(one.chosen):
            counts.excluded[EMPTY] += 1
            continue
        counts.rows += 1
        record = {
            "messages": conversation_with_response(one.comparison.row, one.chosen),
            "model": one.candidates[0],
            **choice_columns(one.comparison),
        }
        yield encode_line(record)


def write_conversations(
    rows: ExportRows, raters: ExportedRaters, options: ExportOptions, tally: ExportTally
) -> Iterator[bytes]:
    return conversation_lines(rows, raters.aspects, options.preference_rule(raters), tally)


MESSAGES_FORMAT: Final = ExportFormat(
    name="messages",
    title="Messages",
    purpose="the preferred conversation of each comparison, a line each, for fine-tuning",
    ending="jsonl",
    write=write_conversations,
    wants_choice=True,
    reasons={**EXCLUSION_REASONS, EMPTY: "the preferred response is empty"},
)
