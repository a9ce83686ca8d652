"""Single responses labelled good or bad for KTO trainers."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from evaluations.domain.choices import Choice
from evaluations.domain.preferences import PreferenceRule
from evaluations.formats.export_format import ExportFormat, ExportOptions, ExportRows, ExportTally, FormatSetting
from evaluations.formats.exported_rows import ExportedRaters, LabelledRow
from evaluations.formats.jsonl_export import encode_line
from evaluations.formats.preferences import (
    EXCLUSION_REASONS,
    DecidedComparison,
    ExclusionReason,
    ExportCounts,
    choice_columns,
    decided_comparisons,
)
from evaluations.formats.prompt_layouts import (
    LAYOUT_SETTING,
    Layout,
    is_empty_response,
    lay_out_as_chat,
    lay_out_as_plain,
)

TIES: Final = FormatSetting(
    name="ties",
    label="Ties",
    values={"drop": "left out", "good": "both responses are good"},
    initial="drop",
)
# Layouts with prompt and answer in separate fields; the implicit one does not exist for single answers.
LAYOUTS: Final = replace(
    LAYOUT_SETTING, values={one: words for one, words in LAYOUT_SETTING.values.items() if one != Layout.IMPLICIT}
)
# Whether A and B are good, by choice.
GOOD: Final[dict[Choice, tuple[bool, bool]]] = {
    Choice.A: (True, False),
    Choice.B: (False, True),
    Choice.BOTH_BAD: (False, False),
    Choice.TIE: (True, True),
}


def kto_lines(
    rows: Iterable[LabelledRow],
    aspects: Sequence[str],
    rule: PreferenceRule,
    counts: ExportCounts,
    layout: Layout = Layout.CHAT,
    *,
    ties: bool = False,
) -> Iterator[bytes]:
    """Two lines a comparison: the chosen response is good and the other bad, or both are bad.

    ``ties``: whether both responses of a tie are good, as is true only where the rubric also offers *both bad*;
    otherwise ties are left out. A response of several comparisons is in the file as often.
    """
    for one in decided_comparisons(rows, rule, aspects, counts):
        if reason := kto_exclusion(one, ties=ties):
            counts.excluded[reason] += 1
            continue
        row = one.row
        sides = (("response_a", "candidate_a"), ("response_b", "candidate_b"))
        for (response, candidate), good in zip(sides, GOOD[one.choice], strict=True):
            counts.rows += 1
            counts.noted["good" if good else "bad"] += 1
            if is_empty_response(row[response]):  # type: ignore[literal-required]
                counts.noted["completion_is_empty"] += 1
            yield encode_line(kto_record(one, row[response], row[candidate], layout, good=good))  # type: ignore[literal-required]


def kto_exclusion(one: DecidedComparison, *, ties: bool) -> ExclusionReason | None:
    if one.choice == Choice.TIE and not ties:
        return ExclusionReason.TIE
    one_sided = one.choice in (Choice.A, Choice.B)
    return ExclusionReason.EQUAL_RESPONSES if one_sided and one.row["response_a"] == one.row["response_b"] else None


def kto_record(one: DecidedComparison, response: Any, candidate: str, layout: Layout, *, good: bool) -> dict[str, Any]:
    asked = (lay_out_as_plain if layout == Layout.PLAIN else lay_out_as_chat)(one.row, response)
    return {
        "prompt": asked.prompt,
        "completion": asked.answers[0],
        "label": good,
        "model": candidate,
        "choice": sideless_choice(one.choice),
        **choice_columns(one),
    }


def sideless_choice(choice: Choice) -> str:
    """The choice without sides, because the row has only one response."""
    return "preference" if choice in (Choice.A, Choice.B) else str(choice)


def write_kto(rows: ExportRows, raters: ExportedRaters, options: ExportOptions, tally: ExportTally) -> Iterator[bytes]:
    layout, ties = Layout(options.settings["layout"]), options.settings["ties"] == "good"
    labelled = rows
    return kto_lines(labelled, raters.aspects, options.preference_rule(raters), tally, layout, ties=ties)


KTO_FORMAT: Final = ExportFormat(
    name="kto",
    title="KTO",
    purpose="single responses that are good or bad, a line each (TRL)",
    ending="jsonl",
    write=write_kto,
    wants_choice=True,
    settings=(LAYOUTS, TIES),
    reasons=EXCLUSION_REASONS,
)
