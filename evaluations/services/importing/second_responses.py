"""A candidate's second, different response to one query: refused unless the row numbers it or a person decides."""

from collections.abc import Sequence
from typing import Final, cast

from evaluations.domain import SAMPLE, Message, NewResponse, text_of
from evaluations.formats.conversing import UNNAMED
from evaluations.formats.values import RowRefused
from evaluations.models import Response
from evaluations.services.importing.naming import Addition
from evaluations.services.importing.pairing import REPLACES
from evaluations.services.importing.replacements import used_among
from evaluations.services.importing.sketching import ResponseSketch

EXCERPT: Final = 40  # characters of either text in a sentence
SUM: Final = 64  # letters of a SHA-256
# Whether a response has a number, behind its sum.
NUMBERED, UNNUMBERED = "+", "-"


class RowSkipped(Exception):
    """The row is left out, as a person decided of such rows."""


# ---- what earlier lines of the file said --------------------------------------------------------
# The first response of each candidate is kept under its name alone; another one under its text or its sample too.


def is_new_response(added: Addition, response: ResponseSketch) -> bool:
    """Whether it is to be stored. Raises RowRefused or RowSkipped where it is a second one that must not be."""
    query, name = response.query, response.candidate.name
    first = added.batch.before(query, ("response", name))
    if first is None and not any(other == name for other, _ in query.responses):
        return True
    if first and (first[0][:SUM] == response.sha256 or added.batch.before(query, ("response", *response.key))):
        return False
    settle_second_response(added, response)
    return True


def remember_response(added: Addition, response: ResponseSketch) -> None:
    query, name = response.query, response.candidate.name
    numbered = UNNUMBERED if response.sample is None else NUMBERED
    word = response.sha256 + numbered + response.messages[-1]["content"][:EXCERPT]
    added.remember(query, ("response", name), word)
    if response.sample is not None:
        added.remember(query, ("sample", name, response.sample), word)
    if response.sample is not None or name in UNNAMED or added.batch.around.new_response == NewResponse.KEEP:
        added.remember(query, ("response", *response.key))


# ---- the rule ------------------------------------------------------------------------------------


def settle_second_response(added: Addition, response: ResponseSketch) -> None:
    """Raise RowRefused or RowSkipped where the candidate has another response to the query that is no other sample."""
    decided = added.batch.around.new_response
    if response.candidate.name in UNNAMED or decided == NewResponse.KEEP:
        return
    in_file, stored = in_this_file(added, response), stored_already(response)
    if not in_file and not stored:
        return
    if decided == NewResponse.SKIP:
        raise RowSkipped
    if decided == NewResponse.REPLACE and not in_file:
        replace(added, response, stored)
        return
    how = (
        "A file cannot replace its own"
        if decided == NewResponse.REPLACE
        else "Number samples in a column “sample”, or choose to keep, replace or skip"
    )
    raise RowRefused(f"{told(response, in_file or place_of(stored[0]))}. {how}")


def told(response: ResponseSketch, where: str) -> str:
    which = "" if response.sample is None else f"sample {response.sample} of "
    words = f"“{excerpt(response.messages)}”"
    alike = ", which begins alike or differs in blank space" if words in where else ""
    return (
        f"{which}“{response.candidate.name}” already has another response to query “{response.query.key}”, {where}: "
        f"not {words}{alike}"
    )


def in_this_file(added: Addition, response: ResponseSketch) -> str:
    """Where in the file the other one stands and how it begins, or ""."""
    name, query, sample = response.candidate.name, response.query, response.sample
    for one in query.responses.values():
        if one.candidate.name == name and one.line is not None and is_same_sample(one.sample, sample):
            return f"in line {one.line:,} (“{excerpt(one.messages)}”)"
    key = ("response", name) if sample is None else ("sample", name, sample)
    before = added.batch.before(query, key)
    first = added.batch.before(query, ("response", name))
    if before is None and first and first[0][SUM] == UNNUMBERED:
        before = first
    if before and before[0][:SUM] != response.sha256:
        return f"in line {before[1]:,} (“{shortened(before[0][SUM + 1 :])}”)"
    return ""


def is_same_sample(one: int | None, other: int | None) -> bool:
    """Whether two different responses are not two samples: each must have a number, and another one."""
    return one is None or other is None or one == other


def stored_already(response: ResponseSketch) -> list[Response]:
    known = [one.pk for one in response.query.responses.values() if one.candidate.name == response.candidate.name]
    ids = [pk for pk in known if pk is not None]
    found = Response.all_rows.filter(pk__in=ids).order_by("pk") if ids else ()
    return [one for one in found if is_same_sample(one.metadata.get(SAMPLE), response.sample)]


def place_of(stored: Response) -> str:
    by = f"stored by import {stored.source_import_id}" if stored.source_import_id else "added by hand"
    return f"{by} (“{excerpt(cast('Sequence[Message]', stored.messages))}”)"


def replace(added: Addition, response: ResponseSketch, stored: Sequence[Response]) -> None:
    """Let it take the place of the other when all is shown."""
    old, around = stored[0], added.batch.around
    where = place_of(old)
    if around.importing and old.source_import_id == around.importing.pk:
        raise RowRefused(f"{told(response, where)}. A file cannot replace its own")
    if len(stored) > 1:
        raise RowRefused(f"{told(response, where)}. It has {len(stored)} of them: which one to replace is not clear")
    if old.pk in used_in_batch(added):
        raise RowRefused(
            f"{told(response, where)}. The other cannot be replaced: it was judged, reviewed, scored, discussed, "
            "reserved or exported already"
        )
    response.replaces = (response.candidate.name, old.sha256)
    response.metadata = {**response.metadata, REPLACES: old.pk}


def used_in_batch(added: Addition) -> set[int]:
    """Looked up once for a batch, and only where something is to be replaced in it."""
    batch = added.batch
    if batch.used is None:
        stored = (one.pk for query in batch.queries.values() for one in query.responses.values())
        batch.used = used_among({pk for pk in stored if pk is not None})
    return batch.used


def excerpt(messages: Sequence[Message]) -> str:
    return shortened(text_of(messages[-1:]))


def shortened(text: str) -> str:
    words = " ".join(text[: EXCERPT * 2].split())
    return words if len(words) < EXCERPT else f"{words[:EXCERPT]}…"
