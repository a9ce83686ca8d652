"""Preferences for DPO trainers: prompt, chosen, rejected, as TRL names them.

TRL picks its columns by name and infers the data set's type from all names present, so no other column may be called
``completion``, ``label`` or ``messages``; ``margin`` would change what a reward model is trained for. Everything else
about a row has other names.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from evaluations.domain.preferences import PreferenceRule
from evaluations.formats.export_format import ExportFormat, ExportOptions, ExportRows, ExportTally
from evaluations.formats.exported_rows import ExportedRaters, LabelledRow
from evaluations.formats.jsonl_export import encode_line
from evaluations.formats.preferences import (
    EXCLUSION_REASONS,
    ExportCounts,
    PreferredResponse,
    choice_columns,
    preferred_responses,
)
from evaluations.formats.prompt_layouts import (
    LAYOUT_SETTING,
    Layout,
    conversation_with_response,
    is_empty_response,
    lay_out_as_chat,
    lay_out_as_plain,
)


def dpo_lines(
    rows: Iterable[LabelledRow],
    aspects: Sequence[str],
    rule: PreferenceRule,
    counts: ExportCounts,
    layout: Layout = Layout.CHAT,
) -> Iterator[bytes]:
    """A line for each comparison that prefers one response. Ties and two bad responses are left out, and counted."""
    for one in preferred_responses(rows, rule, aspects, counts):
        counts.rows += 1
        count_dpo_warnings(one, counts)
        yield encode_line(dpo_record(one, layout))


def dpo_record(one: PreferredResponse, layout: Layout) -> dict[str, Any]:
    chosen_by, rejected_by = one.candidates
    return {
        **lay_out_preference(one, layout),
        "chosen_model": chosen_by,
        "rejected_model": rejected_by,
        **choice_columns(one.comparison),
    }


def lay_out_preference(one: PreferredResponse, layout: Layout) -> dict[str, Any]:
    row = one.comparison.row
    if layout == Layout.IMPLICIT:
        return {
            "chosen": conversation_with_response(row, one.chosen),
            "rejected": conversation_with_response(row, one.rejected),
        }
    asked = (lay_out_as_plain if layout == Layout.PLAIN else lay_out_as_chat)(row, one.chosen, one.rejected)
    return {"prompt": asked.prompt, "chosen": asked.answers[0], "rejected": asked.answers[1]}


def count_dpo_warnings(one: PreferredResponse, counts: ExportCounts) -> None:
    """Rows of which a trainer should know."""
    if is_empty_response(one.chosen):
        counts.noted["chosen_is_empty"] += 1
    if is_empty_response(one.rejected):
        counts.noted["rejected_is_empty"] += 1
    if not (isinstance(one.chosen, str) and isinstance(one.rejected, str)):
        counts.noted["response_of_several_turns"] += 1


def write_dpo(rows: ExportRows, raters: ExportedRaters, options: ExportOptions, tally: ExportTally) -> Iterator[bytes]:
    layout = Layout(options.settings["layout"])
    return dpo_lines(rows, raters.aspects, options.preference_rule(raters), tally, layout)


DPO_FORMAT: Final = ExportFormat(
    name="dpo",
    title="DPO preferences",
    purpose="prompt, chosen and rejected, a line each, for DPO and reward models (TRL)",
    ending="jsonl",
    write=write_dpo,
    wants_choice=True,
    settings=(LAYOUT_SETTING,),
    reasons=EXCLUSION_REASONS,
)
