"""Single responses that are good or bad, for KTO: ``prompt``, ``completion``, ``label``, as TRL names them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from evaluations.domain import Choice, Deciding
from evaluations.formats.exported import LabelledRow, Raters
from evaluations.formats.jsonl_out import encoded
from evaluations.formats.layouts import LAYOUT, Layout, as_chat, as_plain, is_empty
from evaluations.formats.leaving import Leaving, Options, Rows, Setting, Tally
from evaluations.formats.preferred import LEFT_OUT_IN_WORDS, Account, Decided, LeftOut, all_decided, told_of

TIES: Final = Setting(
    name="ties",
    label="Ties",
    values={"drop": "left out", "good": "both responses are good"},
    initial="drop",
)
# Prompt and answer apart: there is no other way for single answers.
LAYOUTS: Final = replace(LAYOUT, values={one: words for one, words in LAYOUT.values.items() if one != Layout.IMPLICIT})
# What a choice says of A and of B, where it says it of both.
GOOD: Final[dict[Choice, tuple[bool, bool]]] = {
    Choice.A: (True, False),
    Choice.B: (False, True),
    Choice.BOTH_BAD: (False, False),
    Choice.TIE: (True, True),
}


def lines(
    rows: Iterable[LabelledRow],
    aspects: Sequence[str],
    how: Deciding,
    account: Account,
    layout: Layout = Layout.CHAT,
    *,
    ties: bool = False,
) -> Iterator[bytes]:
    """Two lines a comparison: the chosen response is good and the other bad, or both are bad.

    ``ties``: those of a tie are both good, which a tie says only where the rubric offers *both bad* beside it. Else
    ties are left out. A response that stands in several comparisons stands in the file as often.
    """
    for one in all_decided(rows, how, aspects, account):
        if reason := left_out(one, ties=ties):
            account.excluded[reason] += 1
            continue
        row = one.row
        sides = (("response_a", "candidate_a"), ("response_b", "candidate_b"))
        for (response, candidate), good in zip(sides, GOOD[one.choice], strict=True):
            account.rows += 1
            account.noted["good" if good else "bad"] += 1
            if is_empty(row[response]):  # type: ignore[literal-required]
                account.noted["completion_is_empty"] += 1
            yield encoded(record(one, row[response], row[candidate], layout, good=good))  # type: ignore[literal-required]


def left_out(one: Decided, *, ties: bool) -> LeftOut | None:
    if one.choice == Choice.TIE and not ties:
        return LeftOut.TIE
    one_sided = one.choice in (Choice.A, Choice.B)
    return LeftOut.EQUAL_RESPONSES if one_sided and one.row["response_a"] == one.row["response_b"] else None


def record(one: Decided, response: Any, candidate: str, layout: Layout, *, good: bool) -> dict[str, Any]:
    asked = (as_plain if layout == Layout.PLAIN else as_chat)(one.row, response)
    return {
        "prompt": asked.prompt,
        "completion": asked.answers[0],
        "label": good,
        "model": candidate,
        "choice": choice_told(one.choice),
        **told_of(one),
    }


def choice_told(choice: Choice) -> str:
    """What the comparison said, without sides: the row has only one of them."""
    return "preference" if choice in (Choice.A, Choice.B) else str(choice)


def written(rows: Rows, raters: Raters, options: Options, tally: Tally) -> Iterator[bytes]:
    layout, ties = Layout(options.settings["layout"]), options.settings["ties"] == "good"
    labelled = cast("Iterable[LabelledRow]", rows)
    return lines(labelled, raters.aspects, options.deciding(raters), tally, layout, ties=ties)


FORMAT: Final = Leaving(
    name="kto",
    title="KTO",
    purpose="single responses that are good or bad, a line each (TRL)",
    ending="jsonl",
    content_type="application/x-ndjson",
    write=written,
    wants_choice=True,
    settings=(LAYOUTS, TIES),
    reasons=LEFT_OUT_IN_WORDS,
)
