"""Preferences for trainers: pairs for DPO, single responses for KTO, conversations for fine-tuning.

TRL picks its columns by name and infers the data set's type from all names present, so no other column may be called
``completion``, ``label`` or ``messages``; ``margin`` would change what a reward model is trained for. Everything else
about a row has other names.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from evaluations.domain.choices import Choice
from evaluations.domain.preferences import PreferenceRule
from evaluations.domain.texts import Message
from evaluations.formats.export_format import ExportFormat, FormatSetting
from evaluations.formats.exported_rows import (
    ExportedMaterial,
    LabelledRow,
    ResponseText,
    conversation_with_response,
    is_empty_response,
    prompt_messages,
    response_messages,
)
from evaluations.formats.jsonl_export import encode_line
from evaluations.formats.preferences import (
    EXCLUSION_REASONS,
    DecidedComparison,
    ExclusionReason,
    ExportCounts,
    PreferredResponse,
    choice_columns,
    decided_comparisons,
    preferred_responses,
)


class Layout(StrEnum):
    """How prompt and responses are written for a trainer."""

    CHAT = "chat"  # lists of messages, the prompt apart
    IMPLICIT = "implicit"  # lists of messages, each beginning with the prompt
    PLAIN = "plain"  # texts, the prompt apart


LAYOUT_SETTING: Final = FormatSetting(
    name="layout",
    label="Layout",
    values={
        Layout.CHAT: "chat messages, separate prompt",
        Layout.IMPLICIT: "chat messages, prompt included in each response",
        Layout.PLAIN: "plain text, separate prompt",
    },
    initial=Layout.CHAT,
)
BETWEEN: Final = "\n\n"
# As the first published preference data have them, and with them the programs that read transcripts.
SPEAKERS: Final = {"user": "Human", "assistant": "Assistant"}
NEXT: Final = "Assistant: "


def lay_out(layout: Layout, row: ExportedMaterial, *responses: ResponseText) -> tuple[ResponseText, list[ResponseText]]:
    """The prompt and its continuations: chat messages, or texts, of several turns a transcript of Human and Assistant.

    Prompt and answer put together are the whole transcript: the prompt ends where the assistant is to go on.
    """
    if layout != Layout.PLAIN:
        return prompt_messages(row), [response_messages(response) for response in responses]
    if row["query"] is not None and all(isinstance(response, str) for response in responses):
        return row["query"], list(responses)
    answers = [transcript(response_messages(response)).removeprefix(NEXT) for response in responses]
    return transcript(prompt_messages(row)) + BETWEEN + NEXT, [*answers]


def transcript(messages: Sequence[Message]) -> str:
    return BETWEEN.join(f"{SPEAKERS.get(turn['role'], turn['role'].title())}: {turn['content']}" for turn in messages)


def dpo_lines(
    rows: Iterable[LabelledRow],
    aspects: Sequence[str],
    rule: PreferenceRule,
    counts: ExportCounts,
    layout: Layout = Layout.CHAT,
) -> Iterator[bytes]:
    """A line for each comparison that prefers one response. Ties and two bad responses are left out, and counted."""
    for preferred in preferred_responses(rows, rule, aspects, counts):
        counts.rows += 1
        count_dpo_warnings(preferred, counts)
        yield encode_line(dpo_record(preferred, layout))


def dpo_record(preferred: PreferredResponse, layout: Layout) -> dict[str, Any]:
    chosen_by, rejected_by = preferred.candidates
    return {
        **lay_out_preference(preferred, layout),
        "chosen_model": chosen_by,
        "rejected_model": rejected_by,
        **choice_columns(preferred.comparison),
    }


def lay_out_preference(preferred: PreferredResponse, layout: Layout) -> dict[str, Any]:
    row = preferred.comparison.row
    if layout == Layout.IMPLICIT:
        return {
            "chosen": conversation_with_response(row, preferred.chosen),
            "rejected": conversation_with_response(row, preferred.rejected),
        }
    prompt, (chosen, rejected) = lay_out(layout, row, preferred.chosen, preferred.rejected)
    return {"prompt": prompt, "chosen": chosen, "rejected": rejected}


def count_dpo_warnings(preferred: PreferredResponse, counts: ExportCounts) -> None:
    """Count rows with empty responses or responses of several turns."""
    if is_empty_response(preferred.chosen):
        counts.noted["chosen_is_empty"] += 1
    if is_empty_response(preferred.rejected):
        counts.noted["rejected_is_empty"] += 1
    if not (isinstance(preferred.chosen, str) and isinstance(preferred.rejected, str)):
        counts.noted["response_of_several_turns"] += 1


TIES: Final = FormatSetting(
    name="ties",
    label="Ties",
    values={"drop": "exclude", "good": "label both responses good"},
    initial="drop",
)
# Layouts with prompt and answer in separate fields; the implicit one does not exist for single answers.
LAYOUTS: Final = replace(
    LAYOUT_SETTING,
    values={layout: words for layout, words in LAYOUT_SETTING.values.items() if layout != Layout.IMPLICIT},
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
    for decided in decided_comparisons(rows, rule, aspects, counts):
        if reason := kto_exclusion(decided, ties=ties):
            counts.excluded[reason] += 1
            continue
        row = decided.row
        sides = (("response_a", "candidate_a"), ("response_b", "candidate_b"))
        for (response, candidate), good in zip(sides, GOOD[decided.choice], strict=True):
            counts.rows += 1
            counts.noted["good" if good else "bad"] += 1
            if is_empty_response(row[response]):  # type: ignore[literal-required]
                counts.noted["completion_is_empty"] += 1
            yield encode_line(kto_record(decided, row[response], row[candidate], layout, good=good))  # type: ignore[literal-required]


def kto_exclusion(decided: DecidedComparison, *, ties: bool) -> ExclusionReason | None:
    if decided.choice == Choice.TIE and not ties:
        return ExclusionReason.TIE
    one_sided = decided.choice in (Choice.A, Choice.B)
    return (
        ExclusionReason.EQUAL_RESPONSES
        if one_sided and decided.row["response_a"] == decided.row["response_b"]
        else None
    )


def kto_record(
    decided: DecidedComparison, response: Any, candidate: str, layout: Layout, *, good: bool
) -> dict[str, Any]:
    prompt, (completion,) = lay_out(layout, decided.row, response)
    return {
        "prompt": prompt,
        "completion": completion,
        "label": good,
        "model": candidate,
        # Without sides, because the row has only one response.
        "choice": "preference" if decided.choice in (Choice.A, Choice.B) else str(decided.choice),
        **choice_columns(decided),
    }


EMPTY: Final = "empty_response"


def conversation_lines(
    rows: Iterable[LabelledRow], aspects: Sequence[str], rule: PreferenceRule, counts: ExportCounts
) -> Iterator[bytes]:
    """The preferred conversation of each comparison. An empty response is left out: it would teach silence."""
    for preferred in preferred_responses(rows, rule, aspects, counts):
        if is_empty_response(preferred.chosen):
            counts.excluded[EMPTY] += 1
            continue
        counts.rows += 1
        record = {
            "messages": conversation_with_response(preferred.comparison.row, preferred.chosen),
            "model": preferred.candidates[0],
            **choice_columns(preferred.comparison),
        }
        yield encode_line(record)


TRAINER_FORMATS: Final = (
    ExportFormat(
        name="dpo",
        title="DPO preferences",
        purpose="prompt, chosen and rejected response, for DPO and reward models (TRL)",
        ending="jsonl",
        write=lambda rows, raters, options, tally: dpo_lines(
            rows, raters.aspects, options.preference_rule(raters), tally, Layout(options.settings["layout"])
        ),
        wants_choice=True,
        settings=(LAYOUT_SETTING,),
        reasons=EXCLUSION_REASONS,
    ),
    ExportFormat(
        name="kto",
        title="KTO",
        purpose="single responses labeled good or bad (TRL)",
        ending="jsonl",
        write=lambda rows, raters, options, tally: kto_lines(
            rows,
            raters.aspects,
            options.preference_rule(raters),
            tally,
            Layout(options.settings["layout"]),
            ties=options.settings["ties"] == "good",
        ),
        wants_choice=True,
        settings=(LAYOUTS, TIES),
        reasons=EXCLUSION_REASONS,
    ),
    ExportFormat(
        name="messages",
        title="SFT conversations",
        purpose="the preferred conversation of each comparison, for fine-tuning",
        ending="jsonl",
        write=lambda rows, raters, options, tally: conversation_lines(
            rows, raters.aspects, options.preference_rule(raters), tally
        ),
        wants_choice=True,
        reasons={**EXCLUSION_REASONS, EMPTY: "empty responses"},
    ),
)
