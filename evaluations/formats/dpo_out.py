"""Preferences for trainers: ``prompt``, ``chosen``, ``rejected``, as TRL names them, a line each.

TRL takes its columns by name and knows what it has by all names that are there, so no other column may be called
``completion``, ``label`` or ``messages``; ``margin`` would change what a reward model is trained for. What goes with a
row stands under other names.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, cast

from evaluations.domain import Deciding
from evaluations.formats.exported import LabelledRow, Raters
from evaluations.formats.jsonl_out import encoded
from evaluations.formats.layouts import LAYOUT, Layout, as_chat, as_plain, conversation, is_empty
from evaluations.formats.leaving import Leaving, Options, Rows, Tally
from evaluations.formats.preferred import LEFT_OUT_IN_WORDS, Account, Preference, preferences, told_of


def lines(
    rows: Iterable[LabelledRow],
    aspects: Sequence[str],
    how: Deciding,
    account: Account,
    layout: Layout = Layout.CHAT,
) -> Iterator[bytes]:
    """A line for each comparison that prefers one response. Ties and two bad responses are left out, and counted."""
    for one in preferences(rows, how, aspects, account):
        account.rows += 1
        note(one, account)
        yield encoded(record(one, layout))


def record(one: Preference, layout: Layout) -> dict[str, Any]:
    chosen_by, rejected_by = one.candidates
    return {
        **laid_out(one, layout),
        "chosen_model": chosen_by,
        "rejected_model": rejected_by,
        **told_of(one.of),
    }


def laid_out(one: Preference, layout: Layout) -> dict[str, Any]:
    row = one.of.row
    if layout == Layout.IMPLICIT:
        return {"chosen": conversation(row, one.chosen), "rejected": conversation(row, one.rejected)}
    asked = (as_plain if layout == Layout.PLAIN else as_chat)(row, one.chosen, one.rejected)
    return {"prompt": asked.prompt, "chosen": asked.answers[0], "rejected": asked.answers[1]}


def note(one: Preference, account: Account) -> None:
    """Rows of which a trainer should know."""
    if is_empty(one.chosen):
        account.noted["chosen_is_empty"] += 1
    if is_empty(one.rejected):
        account.noted["rejected_is_empty"] += 1
    if not (isinstance(one.chosen, str) and isinstance(one.rejected, str)):
        account.noted["response_of_several_turns"] += 1


def written(rows: Rows, raters: Raters, options: Options, tally: Tally) -> Iterator[bytes]:
    layout = Layout(options.settings["layout"])
    return lines(cast("Iterable[LabelledRow]", rows), raters.aspects, options.deciding(raters), tally, layout)


FORMAT: Final = Leaving(
    name="dpo",
    title="DPO preferences",
    purpose="prompt, chosen and rejected, a line each, for DPO and reward models (TRL)",
    ending="jsonl",
    content_type="application/x-ndjson",
    write=written,
    wants_choice=True,
    settings=(LAYOUT,),
    reasons=LEFT_OUT_IN_WORDS,
)
