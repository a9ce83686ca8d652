"""The rows of a file resolved against what an evaluation holds."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, cast

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.files import (
    FOLLOW_UPS_KEY,
    SAMPLE_KEY,
    BadRow,
    ComparisonRow,
    FileEntry,
    FileRow,
    QueryPart,
    QueryRow,
    ResponseRow,
    ScoreRow,
    VerdictRow,
)
from evaluations.domain.imports import ScoreScale
from evaluations.domain.json_values import JsonMapping
from evaluations.domain.judges import CallState
from evaluations.domain.texts import Messages, messages_sha256, query_sha256
from evaluations.formats.conversations import UNNAMED
from evaluations.formats.seen_index import SeenIndex
from evaluations.formats.values import RowRefused
from evaluations.imports.additions import EntryAddition, refuse_verdicts_and_scores, resolve_named_aspect, resolve_rater
from evaluations.imports.lookup import (
    EntryBatch,
    ImportContext,
    build_failure_key,
    build_score_key,
    build_verdict_key,
    encode_score,
    look_up_batch,
)
from evaluations.imports.response_conflicts import ResponseConflict, RowSkipped, is_new_response, remember_response
from evaluations.imports.row_sketches import (
    ComparisonSketch,
    FailureSketch,
    QuerySketch,
    ResponseSketch,
    ScoreSketch,
    SkippedEntry,
    VerdictSketch,
)
from evaluations.models.comparisons import Candidate, Query
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.verdicts import Score, Verdict


def add_score(added: EntryAddition, row: ScoreRow) -> None:
    response = resolve_response(added, row)
    rater = resolve_rater(added, row)
    if row.value is None:
        add_failure(added, rater, response, ShownOrder.AS_STORED.value, row.failure, row)
        return
    aspect = resolve_named_aspect(added, row.aspect)
    refuse_verdicts_and_scores(added, rater, aspect, Verdict)
    if added.is_new_statement(response, build_score_key(rater, aspect.key, row.sample or 0), encode_score(row.value)):
        added.new.append(ScoreSketch(rater, response, aspect, row, row.value))
    added.scales.append((row.aspect, ScoreScale(row.value, row.value, row.lower_is_better)))


def add_failure(
    added: EntryAddition,
    rater: Rater,
    subject: ComparisonSketch | ResponseSketch,
    shown: str,
    state: str,
    row: VerdictRow | ScoreRow,
) -> None:
    """Add a judge's failure as a call without an answer, one for all aspects."""
    sample = row.sample or 0
    if added.is_new_statement(subject, build_failure_key(rater, shown, sample), state):
        added.new.append(FailureSketch(rater, subject, shown, sample, state, row.rationale))


def resolve_response(added: EntryAddition, row: ScoreRow) -> ResponseSketch:
    query = added.batch.queries.get(row.query_key)
    responses = query.responses.values() if query else ()
    matching = [response for response in responses if response.candidate.name == row.candidate]
    if len(matching) > 1:  # the response given with the score, if any
        matching = [response for response in matching if response in added.responses] or matching
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise RowRefused(
            f"prompt “{row.query_key}” has {len(matching)} responses of “{row.candidate}”: unclear which is meant"
        )
    if query is None:
        raise RowRefused(f"prompt “{row.query_key}” is not in this evaluation")
    if row.candidate not in added.batch.context.candidates:
        raise RowRefused(f"model “{row.candidate}” is not in this evaluation")
    raise RowRefused(f"prompt “{row.query_key}” has no response of “{row.candidate}”")


CHOICE_WORDS: Final = frozenset(map(str, Choice))
FAILURE_WORDS: Final = frozenset(map(str, CallState))
CHECKED_ROWS_PER_BATCH: Final = 4_000
ROWS_PER_KIND: Final = {ComparisonRow: 4, ResponseRow: 2}


@contextmanager
def disable_garbage_collection() -> Iterator[None]:
    """Switch the garbage collector off for a batch of thousands of objects, which are freed by hand."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@disable_garbage_collection()
def resolve_batch(
    context: ImportContext, items: Sequence[FileEntry | BadRow], seen: SeenIndex | None = None
) -> EntryBatch:
    """Resolve a batch against the stored rows. An entry with one bad row adds nothing."""
    batch = look_up_batch(context, items, seen)
    for item in items:
        if isinstance(item, BadRow):
            batch.outcomes.append(item)
            continue
        added = EntryAddition(batch, item.line)
        try:
            for row in item.rows:
                add_row(added, row)
        except RowRefused as refused:
            added.withdraw()
            batch.outcomes.append(BadRow(item.line, str(refused)))
            batch.conflicts += isinstance(refused, ResponseConflict)
        except RowSkipped:
            added.withdraw()
            batch.outcomes.append(SkippedEntry(item.line))
        else:
            batch.outcomes.append(added.accept())
    if seen:
        seen.flush()
    return batch


def add_row(added: EntryAddition, row: FileRow) -> None:
    if isinstance(row, ComparisonRow):
        add_comparison_row(added, row)
    elif isinstance(row, ResponseRow):
        query = add_query(added, row.query)
        messages = insert_follow_ups(query, row.response) if row.lacks_questions else row.response
        add_response(added, query, row.candidate, messages, row.metadata, row.sample)
    elif isinstance(row, QueryRow):
        add_query(added, row.query)
    elif isinstance(row, VerdictRow):
        add_verdict(added, row)
    elif isinstance(row, ScoreRow):
        add_score(added, row)


def add_query(added: EntryAddition, part: QueryPart) -> QuerySketch:
    sha256 = query_sha256(part.messages, part.context, part.reference)
    query_sketch = added.batch.queries.get(part.key)
    if query_sketch is not None:
        refuse_other_query(query_sketch, part, sha256)
        return query_sketch
    if part.is_stand_in and not part.messages:
        raise RowRefused(f"prompt “{part.key}” is not in this evaluation. Import the file with the prompts first")
    query = QuerySketch(part.key, part.cluster, part.category, sha256, line=added.line, part=part, is_unseen=True)
    added.put(added.batch.queries, part.key, query)
    added.new.append(query)
    return query


def refuse_other_query(query: QuerySketch, part: QueryPart, sha256: str) -> None:
    """Refuse a query whose id belongs to another query. Parts that a row leaves out do not contradict."""
    if sha256 != query.sha256 and not part.is_stand_in and not is_same_query_in_part(query, part):
        raise RowRefused(f"prompt “{part.key}” has another text {query.where}")
    if part.cluster not in (query.cluster, part.key):
        raise RowRefused(f"prompt “{part.key}” has another cluster {query.where}")
    if part.category not in (query.category, ""):
        raise RowRefused(f"prompt “{part.key}” has another category {query.where}")


def is_same_query_in_part(query: QuerySketch, part: QueryPart) -> bool:
    """Whether the row repeats the query without its context or its reference answer."""
    if part.context is not None and part.reference is not None:
        return False
    stored = find_full_query(query)
    if stored is None:
        return False
    context = stored.context if part.context is None else part.context
    reference = stored.reference if part.reference is None else part.reference
    return query_sha256(part.messages, context, reference) == query.sha256


def find_full_query(query: QuerySketch) -> QueryPart | Query | None:
    """The full query, or None for a query of an earlier line of a file that is only checked."""
    return query.part or (Query.all_rows.filter(pk=query.pk).first() if query.pk else None)


def insert_follow_ups(query: QuerySketch, response: Messages) -> Messages:
    """Insert the user's later turns, which a file of responses does not hold, into a response."""
    stored = find_full_query(query)
    follow_ups = iter(stored.metadata.get(FOLLOW_UPS_KEY, ()) if stored else ())
    turns = [{**turn, "content": next(follow_ups, None)} if turn["role"] == "user" else turn for turn in response]
    if any(turn["content"] is None for turn in turns):
        raise RowRefused(f"prompt “{query.key}” has no later turns. Import the file with the questions first")
    return cast("Messages", turns)


def add_response(
    added: EntryAddition,
    query: QuerySketch,
    name: str,
    messages: Messages,
    metadata: JsonMapping,
    sample: int | None,
) -> ResponseSketch:
    context = added.batch.context
    candidate = context.candidates.get(name)
    if candidate is None:
        candidate = added.name(context.candidates, name, Candidate(evaluation=context.evaluation, name=name))
    key = (name, messages_sha256(messages))
    existing = query.responses.get(key)
    if existing is not None:
        added.responses.append(existing)
        return existing
    response = ResponseSketch(
        query, candidate, key[1], line=added.line, sample=sample, messages=messages, metadata=metadata
    )
    is_to_be_stored = is_new_response(added, response)
    added.put(query.responses, key, response)
    if is_to_be_stored:
        added.new.append(response)
        remember_response(added, response)
    added.responses.append(response)
    return response


def add_comparison_row(added: EntryAddition, row: ComparisonRow) -> None:
    query = add_query(added, row.query)
    own = {} if row.sample is None else {SAMPLE_KEY: row.sample}
    first = add_response(added, query, row.candidate_a, row.response_a, own, row.sample)
    second = add_response(added, query, row.candidate_b, row.response_b, own, row.sample)
    swapped = first.candidate.sort_name > second.candidate.sort_name
    added.swapped = added.swapped or (swapped and row.candidate_a not in UNNAMED)
    a, b = (second, first) if swapped else (first, second)
    key = (*a.key, *b.key)
    if key in query.comparisons:
        added.comparisons.append(query.comparisons[key])
        return
    comparison = ComparisonSketch(query, a, b, swapped, metadata=row.metadata)
    added.put(query.comparisons, key, comparison)
    added.comparisons.append(comparison)
    remembered = ("comparison", *key)
    if added.batch.find_earlier(query, remembered) is None:
        added.new.append(comparison)
        added.remember(query, remembered)


def add_verdict(added: EntryAddition, row: VerdictRow) -> None:
    comparison = resolve_comparison(added, row)
    oriented = orient_as_stored(row, comparison)
    added.swapped = added.swapped or (oriented is not row and row.candidate_a not in UNNAMED)
    rater = resolve_rater(added, oriented)
    aspect = resolve_verdict_aspect(added, oriented)
    if oriented.choice in FAILURE_WORDS:
        add_failure(added, rater, comparison, oriented.shown, oriented.choice, oriented)
        return
    refuse_verdicts_and_scores(added, rater, aspect, Score)
    key = build_verdict_key(rater, aspect.key, oriented.shown, oriented.sample or 0)
    if added.is_new_statement(comparison, key, oriented.choice):
        added.new.append(VerdictSketch(rater, comparison, aspect, oriented))


def resolve_comparison(added: EntryAddition, row: VerdictRow) -> ComparisonSketch:
    query = added.batch.queries.get(row.query_key)
    comparisons = query.comparisons.values() if query else ()
    matching = [comparison for comparison in comparisons if is_comparison_of_row(comparison, row)]
    if len(matching) > 1:  # the response given with the verdict, if any
        matching = [comparison for comparison in matching if comparison in added.comparisons] or matching
    if len(matching) == 1:
        refuse_other_texts(matching[0], row)
        return matching[0]
    names = list_named_candidates(row)
    named = " of " + " and ".join(f"“{name}”" for name in names) if names else ""
    if len(matching) > 1:
        what = "name the other model" if len(names) == 1 else "name both models"
        raise RowRefused(f"prompt “{row.query_key}” has {len(matching)} comparisons{named}: {what}")
    if query is None:
        raise RowRefused(f"prompt “{row.query_key}” is not in this evaluation")
    for name in names:
        if name not in added.batch.context.candidates:
            raise RowRefused(f"model “{name}” is not in this evaluation")
    raise RowRefused(f"prompt “{row.query_key}” has no comparison{named}")


def is_comparison_of_row(comparison: ComparisonSketch, row: VerdictRow) -> bool:
    named = list_named_candidates(row)
    is_one_twice = len(set(named)) < len(named)
    return not is_one_twice and {comparison.a.candidate.name, comparison.b.candidate.name}.issuperset(named)


def list_named_candidates(row: VerdictRow) -> list[str]:
    """The candidates that a row names: two, one, or none if it only gives the order shown."""
    return [name for name in (row.candidate_a, row.candidate_b) if name is not None]


def refuse_other_texts(comparison: ComparisonSketch, row: VerdictRow) -> None:
    """Refuse a row, joined by number alone, whose texts differ from the stored ones."""
    if row.expected_texts is None:
        return
    query, first, second = row.expected_texts
    stored = [comparison.a.sha256, comparison.b.sha256]
    expected = [messages_sha256([{"role": "assistant", "content": text}]) for text in (first, second)]
    if comparison.query.text != query or (stored[::-1] if comparison.swapped else stored) != expected:
        raise RowRefused(f"the texts differ from prompt “{row.query_key}”: another file, or another order")


def orient_as_stored(row: VerdictRow, comparison: ComparisonSketch) -> VerdictRow:
    """The row in terms of the comparison's A and B."""
    if row.candidate_a is not None:
        return row if comparison.a.candidate.name == row.candidate_a else row.with_swapped_sides()
    is_turned = comparison.swapped if row.candidate_b is None else comparison.a.candidate.name == row.candidate_b
    return row.with_swapped_choice() if is_turned else row


def resolve_verdict_aspect(added: EntryAddition, row: VerdictRow) -> Aspect:
    offered = added.batch.context.offered.get(row.aspect)
    if offered is None:
        added.imported_aspects.append(row.aspect)
    elif row.choice in CHOICE_WORDS and row.choice not in offered:
        raise RowRefused(f"the rubric does not offer {row.choice} for {row.aspect}")
    return resolve_named_aspect(added, row.aspect)


def batch_entries(items: Iterator[FileEntry | BadRow], weight_limit: int) -> Iterator[list[FileEntry | BadRow]]:
    """Batches of entries that add about ``weight_limit`` rows each."""
    while batch := read_next_batch(items, weight_limit):
        yield batch


@disable_garbage_collection()
def read_next_batch(items: Iterator[FileEntry | BadRow], weight_limit: int) -> list[FileEntry | BadRow]:
    batch: list[FileEntry | BadRow] = []
    weight = 0
    for item in items:
        batch.append(item)
        weight += count_brought_rows(item)
        if weight >= weight_limit:
            break
    return batch


def count_brought_rows(item: FileEntry | BadRow) -> int:
    """The number of rows that an entry adds: a comparison also adds its query and two responses."""
    if isinstance(item, BadRow):
        return 1
    if len(item.rows) == 1:
        return ROWS_PER_KIND.get(type(item.rows[0]), 1)
    return sum(ROWS_PER_KIND.get(type(row), 1) for row in item.rows)
