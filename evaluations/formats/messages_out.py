"""Conversations to imitate: the query with the response that is preferred, as ``messages``, a line each."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, cast

from evaluations.domain import Deciding
from evaluations.formats.exported import LabelledRow, Raters
from evaluations.formats.jsonl_out import encoded
from evaluations.formats.layouts import conversation, is_empty
from evaluations.formats.leaving import Leaving, Options, Rows, Tally
from evaluations.formats.preferred import LEFT_OUT_IN_WORDS, Account, preferences, told_of

EMPTY: Final = "empty_response"


def lines(rows: Iterable[LabelledRow], aspects: Sequence[str], how: Deciding, account: Account) -> Iterator[bytes]:
    """The preferred conversation of each comparison. An empty response is left out: it would teach silence."""
    for one in preferences(rows, how, aspects, account):
        if is_empty(one.chosen):
            account.excluded[EMPTY] += 1
            continue
        account.rows += 1
        record = {"messages": conversation(one.of.row, one.chosen), "model": one.candidates[0], **told_of(one.of)}
        yield encoded(record)


def written(rows: Rows, raters: Raters, options: Options, tally: Tally) -> Iterator[bytes]:
    return lines(cast("Iterable[LabelledRow]", rows), raters.aspects, options.deciding(raters), tally)


FORMAT: Final = Leaving(
    name="messages",
    title="Messages",
    purpose="the preferred conversation of each comparison, a line each, for fine-tuning",
    ending="jsonl",
    content_type="application/x-ndjson",
    write=written,
    wants_choice=True,
    reasons={**LEFT_OUT_IN_WORDS, EMPTY: "the preferred response is empty"},
)
