"""What a batch of rows means in an evaluation: which are new, which are here already, which are bad."""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast

from evaluations.domain import (
    FOLLOW_UPS,
    SAMPLE,
    BadRow,
    CallState,
    Choice,
    ComparisonRow,
    Messages,
    QueryPart,
    QueryRow,
    ResponseRow,
    Row,
    ScoreRow,
    VerdictRow,
    messages_sha256,
    query_sha256,
)
from evaluations.formats.conversing import UNNAMED
from evaluations.formats.reading import Entry, sorted_by_name, turned_round
from evaluations.formats.seen import Seen
from evaluations.formats.values import RowRefused
from evaluations.models import Aspect, Candidate, Query, Rater, Score
from evaluations.services.importing.knowing import Around, Batch, Skipped, key_of_failure, key_of_verdict, look_up
from evaluations.services.importing.naming import Addition, named_aspect, rater_meant, refuse_second_way
from evaluations.services.importing.scoring import add_score
from evaluations.services.importing.second_responses import (
    RowSkipped,
    is_new_response,
    remember_response,
)
from evaluations.services.importing.sketching import (
    ComparisonSketch,
    FailureSketch,
    QuerySketch,
    ResponseSketch,
    SaidKey,
    VerdictSketch,
    where,
)

CHOICES: Final = frozenset(map(str, Choice))
FAILURES: Final = frozenset(map(str, CallState))
BROUGHT: Final = {ComparisonRow: 4, ResponseRow: 2}


@contextmanager
def uncollected() -> Iterator[None]:
    """Without looks for garbage that goes in circles: a batch is thousands of objects, and falls apart itself."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@uncollected()
def resolve(around: Around, items: Sequence[Entry | BadRow], seen: Seen | None = None) -> Batch:
    """Hold a batch against what is there. An entry of which one row is bad adds nothing at all."""
    batch = look_up(around, items, seen)
    for item in items:
        if isinstance(item, BadRow):
            batch.outcomes.append(item)
            continue
        added = Addition(batch, item.line)
        try:
            for row in item.rows:
                add(added, row)
        except RowRefused as refused:
            added.take_out()
            batch.outcomes.append(BadRow(item.line, str(refused)))
        except RowSkipped:
            added.take_out()
            batch.outcomes.append(Skipped(item.line))
        else:
            batch.outcomes.append(added.keep())
    if seen:
        seen.flush()
    return batch


# ---- adding rows, one entry at a time --------------------------------------------------------


def add(added: Addition, row: Row) -> None:
    if isinstance(row, ComparisonRow):
        add_comparison(added, row)
    elif isinstance(row, ResponseRow):
        query = add_query(added, row.query)
        messages = with_questions(query, row.response) if row.lacks_questions else row.response
        add_response(added, query, row.candidate, messages, row.metadata, row.sample)
    elif isinstance(row, QueryRow):
        add_query(added, row.query)
    elif isinstance(row, VerdictRow):
        add_verdict(added, row)
    elif isinstance(row, ScoreRow):
        add_score(added, row)


def add_query(added: Addition, part: QueryPart) -> QuerySketch:
    sha256 = query_sha256(part.messages, part.context, part.reference)
    known = added.batch.queries.get(part.key)
    if known is not None:
        refuse_other_query(known, part, sha256)
        return known
    if part.is_stand_in and not part.messages:
        raise RowRefused(
            f"there is no query “{part.key}” in this evaluation: its words are in another file, import that one first"
        )
    query = QuerySketch(part.key, part.cluster, part.category, sha256, line=added.line, part=part, fresh=True)
    added.put(added.batch.queries, part.key, query)
    added.new.append(query)
    return query


def refuse_other_query(known: QuerySketch, part: QueryPart, sha256: str) -> None:
    """The same id must mean the same query. What a row leaves out it does not contradict."""
    if sha256 != known.sha256 and not part.is_stand_in and not leaves_out(known, part):
        raise RowRefused(f"query “{part.key}” stands {known.where} with another text")
    if part.cluster not in (known.cluster, part.key):
        raise RowRefused(f"query “{part.key}” stands {known.where} with another cluster")
    if part.category not in (known.category, ""):
        raise RowRefused(f"query “{part.key}” stands {known.where} with another category")


def leaves_out(known: QuerySketch, part: QueryPart) -> bool:
    """Whether the row says the same of the query, only without its context or its reference answer."""
    if part.context is not None and part.reference is not None:
        return False
    stored = told_of(known)
    if stored is None:
        return False
    context = stored.context if part.context is None else part.context
    reference = stored.reference if part.reference is None else part.reference
    return query_sha256(part.messages, context, reference) == known.sha256


def told_of(known: QuerySketch) -> QueryPart | Query | None:
    """A query in full; none where it is that of an earlier line of a file that is only checked."""
    return known.part or (Query.all_rows.filter(pk=known.pk).first() if known.pk else None)


def with_questions(query: QuerySketch, response: Messages) -> Messages:
    """A response with what the user said between its turns, which the file of responses does not hold."""
    told = told_of(query)
    follow_ups = iter(told.metadata.get(FOLLOW_UPS, ()) if told else ())
    turns = [{**turn, "content": next(follow_ups, None)} if turn["role"] == "user" else turn for turn in response]
    if any(turn["content"] is None for turn in turns):
        raise RowRefused(f"query “{query.key}” is here without its later turns: import the file of the questions first")
    return cast("Messages", turns)


def add_response(
    added: Addition,
    query: QuerySketch,
    name: str,
    messages: Messages,
    metadata: Mapping[str, Any],
    sample: int | None,
) -> ResponseSketch:
    around = added.batch.around
    candidate = around.candidates.get(name)
    if candidate is None:
        candidate = added.name(around.candidates, name, Candidate(evaluation=around.evaluation, name=name))
    key = (name, messages_sha256(messages))
    known = query.responses.get(key)
    if known is not None:
        added.answered.append(known)
        return known
    response = ResponseSketch(
        query, candidate, key[1], line=added.line, sample=sample, messages=messages, metadata=metadata
    )
    is_to_be_stored = is_new_response(added, response)
    added.put(query.responses, key, response)
    if is_to_be_stored:
        added.new.append(response)
        remember_response(added, response)
    added.answered.append(response)
    return response


def add_comparison(added: Addition, row: ComparisonRow) -> None:
    query = add_query(added, row.query)
    own = {} if row.sample is None else {SAMPLE: row.sample}
    first = add_response(added, query, row.candidate_a, row.response_a, own, row.sample)
    second = add_response(added, query, row.candidate_b, row.response_b, own, row.sample)
    turned = row.candidate_a > row.candidate_b
    added.turned = added.turned or (turned and row.candidate_a not in UNNAMED)
    a, b = (second, first) if turned else (first, second)
    key = (*a.key, *b.key)
    if key in query.comparisons:
        added.brought.append(query.comparisons[key])
        return
    comparison = ComparisonSketch(query, a, b, turned, metadata=row.metadata)
    added.put(query.comparisons, key, comparison)
    added.brought.append(comparison)
    remembered = ("comparison", *key)
    if added.batch.before(query, remembered) is None:
        added.new.append(comparison)
        added.remember(query, remembered)


def add_verdict(added: Addition, row: VerdictRow) -> None:
    comparison = comparison_meant(added, row)
    told = as_stored(row, comparison)
    added.turned = added.turned or (told is not row and row.candidate_a not in UNNAMED)
    rater = rater_meant(added, told)
    if told.choice in FAILURES:
        add_failure(added, told, comparison, rater)
    else:
        add_choice(added, told, comparison, rater)


def add_choice(added: Addition, told: VerdictRow, comparison: ComparisonSketch, rater: Rater) -> None:
    aspect = aspect_meant(added, told)
    refuse_second_way(added, rater, aspect, Score)
    if is_new(added, comparison, key_of_verdict(rater, aspect.key, told.shown, told.sample or 0), told.choice):
        added.new.append(VerdictSketch(rater, comparison, aspect, told))


def add_failure(added: Addition, told: VerdictRow, comparison: ComparisonSketch, rater: Rater) -> None:
    """A judge's failure is a call without an answer: one for all aspects it was asked about."""
    aspect_meant(added, told)
    if is_new(added, comparison, key_of_failure(rater, told.shown, told.sample or 0), told.choice):
        added.new.append(FailureSketch(rater, comparison, told.shown, told.sample or 0, told.choice, told.rationale))


def is_new(added: Addition, comparison: ComparisonSketch, key: SaidKey, word: str) -> bool:
    """Whether nothing stands there yet. What says otherwise is refused."""
    subject = ("verdict", *comparison.key)
    found = added.said(comparison.query, subject, comparison.said, key)
    if found is None:
        added.say(comparison.query, subject, comparison.said, key, word)
    elif found[0] != word:
        raise RowRefused(f"the same verdict stands {where(found[1])} with the choice {found[0]}, not {word}")
    return found is None


# ---- what a verdict row means by its names ---------------------------------------------------


def comparison_meant(added: Addition, row: VerdictRow) -> ComparisonSketch:
    query = added.batch.queries.get(row.query_key)
    matching = [one for one in query.comparisons.values() if is_meant(one, row)] if query else []
    if len(matching) > 1:  # the one that stands beside the verdict, if any
        matching = [one for one in matching if one in added.brought] or matching
    if len(matching) == 1:
        refuse_other_texts(matching[0], row)
        return matching[0]
    named = " of " + " and ".join(f"“{name}”" for name in names_in(row)) if names_in(row) else ""
    if len(matching) > 1:
        what = "the row does not name the other candidate" if len(names_in(row)) == 1 else "which one is not clear"
        raise RowRefused(f"query “{row.query_key}” has {len(matching)} comparisons{named}: {what}")
    if query is None:
        raise RowRefused(f"there is no query “{row.query_key}” in this evaluation")
    for name in names_in(row):
        if name not in added.batch.around.candidates:
            raise RowRefused(f"there is no candidate “{name}” in this evaluation")
    raise RowRefused(f"query “{row.query_key}” has no comparison{named}")


def is_meant(comparison: ComparisonSketch, row: VerdictRow) -> bool:
    named = names_in(row)
    is_one_twice = len(set(named)) < len(named)
    return not is_one_twice and {comparison.a.candidate.name, comparison.b.candidate.name}.issuperset(named)


def names_in(row: VerdictRow) -> list[str]:
    """The candidates that a row names: two, one, or none where it only says which response stood first."""
    return [name for name in (row.candidate_a, row.candidate_b) if name is not None]


def refuse_other_texts(comparison: ComparisonSketch, row: VerdictRow) -> None:
    """Where a file joins by row number alone, its texts must be those that are stored."""
    if row.expected_texts is None:
        return
    query, first, second = row.expected_texts
    stored = [comparison.a.sha256, comparison.b.sha256]
    expected = [messages_sha256([{"role": "assistant", "content": text}]) for text in (first, second)]
    if comparison.query.text != query or (stored[::-1] if comparison.turned else stored) != expected:
        raise RowRefused(f"the texts are not those of query “{row.query_key}”: it is another file, or another order")


def as_stored(row: VerdictRow, comparison: ComparisonSketch) -> VerdictRow:
    """The row in terms of the comparison's A and B."""
    if row.candidate_a is not None:
        return sorted_by_name(row)
    is_turned = comparison.turned if row.candidate_b is None else comparison.a.candidate.name == row.candidate_b
    return turned_round(row) if is_turned else row


def aspect_meant(added: Addition, row: VerdictRow) -> Aspect:
    offered = added.batch.around.offered.get(row.aspect)
    if offered is None:
        added.imported_aspects.append(row.aspect)
    elif row.choice in CHOICES and row.choice not in offered:
        raise RowRefused(f"the rubric does not offer {row.choice} for {row.aspect}")
    return named_aspect(added, row.aspect)


def in_batches(items: Iterator[Entry | BadRow], most: int) -> Iterator[list[Entry | BadRow]]:
    """Some entries at a time, so many that they add no more than about ``most`` rows to the database."""
    while batch := next_batch(items, most):
        yield batch


@uncollected()
def next_batch(items: Iterator[Entry | BadRow], most: int) -> list[Entry | BadRow]:
    batch: list[Entry | BadRow] = []
    weight = 0
    for item in items:
        batch.append(item)
        weight += rows_brought(item)
        if weight >= most:
            break
    return batch


def rows_brought(item: Entry | BadRow) -> int:
    """A comparison brings its query and two responses, a response its query; a bad row is read all the same."""
    if isinstance(item, BadRow):
        return 1
    if len(item.rows) == 1:
        return BROUGHT.get(type(item.rows[0]), 1)
    return sum(BROUGHT.get(type(row), 1) for row in item.rows)
