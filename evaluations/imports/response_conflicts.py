"""Conflicts between different responses of one candidate to a query: refused, kept, skipped or replaced."""

from collections.abc import Sequence
from typing import Final, cast

from evaluations.domain.files import SAMPLE_KEY, NewResponse
from evaluations.domain.texts import Message, messages_to_text
from evaluations.formats.conversations import UNNAMED
from evaluations.formats.values import RowRefused
from evaluations.imports.additions import EntryAddition
from evaluations.imports.replaced_responses import REPLACES, find_used_responses
from evaluations.imports.row_sketches import WAITING_FILE_TEXT, ResponseSketch, describe_line
from evaluations.models.comparisons import Response

EXCERPT_CHARACTERS: Final = 40
SHA256_LENGTH: Final = 64
# Whether a response has a sample number: stored after its SHA-256.
NUMBERED, UNNUMBERED = "+", "-"
OWN_NOT_REPLACEABLE: Final = "A file cannot replace its own responses"


class ResponseConflict(RowRefused):
    """The row holds another response than a known one: a person must decide what to do."""


class RowSkipped(Exception):
    """The row is left out because a person chose to skip such rows."""


# In the SeenIndex the first response of each candidate has its name as the key, others also their text or sample.


def is_new_response(added: EntryAddition, response: ResponseSketch) -> bool:
    """Whether to store the response. Raises RowRefused or RowSkipped for a second one that must not be stored."""
    query, name = response.query, response.candidate.name
    first = added.batch.find_earlier(query, ("response", name))
    if first is None and not any(other == name for other, _ in query.responses):
        return True
    if first and (
        first[0][:SHA256_LENGTH] == response.sha256 or added.batch.find_earlier(query, ("response", *response.key))
    ):
        return False
    apply_new_response_option(added, response)
    return True


def remember_response(added: EntryAddition, response: ResponseSketch) -> None:
    query, name = response.query, response.candidate.name
    numbered = UNNUMBERED if response.sample is None else NUMBERED
    word = response.sha256 + numbered + response.messages[-1]["content"][:EXCERPT_CHARACTERS]
    added.remember(query, ("response", name), word)
    if response.sample is not None:
        added.remember(query, ("sample", name, response.sample), word)
    if response.sample is not None or name in UNNAMED or added.batch.context.new_response == NewResponse.KEEP:
        added.remember(query, ("response", *response.key))


def apply_new_response_option(added: EntryAddition, response: ResponseSketch) -> None:
    """Raise RowRefused or RowSkipped if the candidate has another response that is no other sample."""
    option = added.batch.context.new_response
    if response.candidate.name in UNNAMED or option == NewResponse.KEEP:
        return
    in_file, stored = find_conflict_in_file(added, response), find_stored_conflicts(response)
    if not in_file and not stored:
        return
    if option == NewResponse.SKIP:
        raise RowSkipped
    if option == NewResponse.REPLACE and in_file.startswith(WAITING_FILE_TEXT):
        return  # stored by then, so that it can be replaced
    if option == NewResponse.REPLACE and not in_file:
        mark_replacement(added, response, stored)
        return
    how = (
        OWN_NOT_REPLACEABLE
        if option == NewResponse.REPLACE
        else "Keep both, replace the other or skip this row, or number the samples in a column “sample”"
    )
    raise ResponseConflict(f"{describe_conflict(response, in_file or describe_origin(stored[0]))}. {how}")


def describe_conflict(response: ResponseSketch, where: str) -> str:
    which = "" if response.sample is None else f"sample {response.sample} of "
    words = f"“{excerpt_messages(response.messages)}”"
    remark = " (they differ later, or in whitespace)" if words in where else ""
    return (
        f"{which}“{response.candidate.name}” already has another response to prompt “{response.query.key}” "
        f"{where}: not {words}{remark}"
    )


def find_conflict_in_file(added: EntryAddition, response: ResponseSketch) -> str:
    """The line and the beginning of the other response in the file, or ""."""
    name, query, sample = response.candidate.name, response.query, response.sample
    for earlier in query.responses.values():
        if earlier.candidate.name == name and earlier.line is not None and may_be_same_sample(earlier.sample, sample):
            return f"{describe_line(earlier.line)} (“{excerpt_messages(earlier.messages)}”)"
    key = ("response", name) if sample is None else ("sample", name, sample)
    before = added.batch.find_earlier(query, key)
    first = added.batch.find_earlier(query, ("response", name))
    if before is None and first and first[0][SHA256_LENGTH] == UNNUMBERED:
        before = first
    if before and before[0][:SHA256_LENGTH] != response.sha256:
        return f"{describe_line(before[1])} (“{shorten_excerpt(before[0][SHA256_LENGTH + 1 :])}”)"
    return ""


def may_be_same_sample(first: int | None, second: int | None) -> bool:
    """Whether two responses may be the same sample: they are not if both have numbers that differ."""
    return first is None or second is None or first == second


def find_stored_conflicts(response: ResponseSketch) -> list[Response]:
    name, others = response.candidate.name, response.query.responses.values()
    ids = [other.pk for other in others if other.candidate.name == name and other.pk is not None]
    stored = Response.all_rows.filter(pk__in=ids).order_by("pk") if ids else ()
    return [row for row in stored if may_be_same_sample(row.metadata.get(SAMPLE_KEY), response.sample)]


def describe_origin(stored: Response) -> str:
    by = f"from import {stored.source_import_id}" if stored.source_import_id else "added by hand"
    return f"{by} (“{excerpt_messages(cast('Sequence[Message]', stored.messages))}”)"


def mark_replacement(added: EntryAddition, response: ResponseSketch, stored: Sequence[Response]) -> None:
    """Mark the response as the replacement of the stored one, done when the import ends."""
    old, context = stored[0], added.batch.context
    where = describe_origin(old)
    if context.importing and old.source_import_id == context.importing.pk:
        raise RowRefused(f"{describe_conflict(response, where)}. {OWN_NOT_REPLACEABLE}")
    if len(stored) > 1:
        raise RowRefused(
            f"{describe_conflict(response, where)}. It has {len(stored)} responses, so it is unclear which to replace"
        )
    if old.pk in find_used_in_batch(added):
        raise RowRefused(
            f"{describe_conflict(response, where)}. The other cannot be replaced: it was already judged, "
            "reviewed, scored, discussed, reserved or exported"
        )
    response.replaces = (response.candidate.name, old.sha256)
    response.metadata = {**response.metadata, REPLACES: old.pk}


def find_used_in_batch(added: EntryAddition) -> set[int]:
    """The used responses of a batch, looked up once, and only if something is to be replaced."""
    batch = added.batch
    if batch.used_responses is None:
        stored = (response.pk for query in batch.queries.values() for response in query.responses.values())
        batch.used_responses = find_used_responses({pk for pk in stored if pk is not None})
    return batch.used_responses


def excerpt_messages(messages: Sequence[Message]) -> str:
    return shorten_excerpt(messages_to_text(messages[-1:]))


def shorten_excerpt(text: str) -> str:
    words = " ".join(text[: EXCERPT_CHARACTERS * 2].split())
    return words if len(words) < EXCERPT_CHARACTERS else f"{words[:EXCERPT_CHARACTERS]}…"
