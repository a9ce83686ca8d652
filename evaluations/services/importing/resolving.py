"""What a batch of rows means in an evaluation: which are new, which are here already, which are bad."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import models

from evaluations.domain import (
    INCONSISTENT,
    BadRow,
    CallState,
    Choice,
    ComparisonOrigin,
    ComparisonRow,
    Messages,
    QueryPart,
    ResponseRow,
    Row,
    ScoreRow,
    VerdictRow,
    content_sha256,
    text_of,
)
from evaluations.formats.reading import Entry, sorted_by_name, turned_round
from evaluations.formats.seen import Seen
from evaluations.formats.values import RowRefused
from evaluations.models import Aspect, Call, Candidate, Comparison, Query, Rater, Response, Score, Verdict
from evaluations.services.importing.knowing import (
    Around,
    Batch,
    Key,
    key_of_call,
    key_of_comparison,
    key_of_response,
    key_of_verdict,
    look_up,
    query_word,
    verdict_word,
)
from evaluations.services.importing.naming import Addition, named_aspect, rater_meant, refuse_second_way
from evaluations.services.importing.pairing import comparison_of
from evaluations.services.importing.scoring import add_score


def resolve(around: Around, items: Sequence[Entry | BadRow], seen: Seen | None = None) -> Batch:
    """Hold a batch against what is there. An entry of which one row is bad adds nothing at all."""
    batch = look_up(around, items, seen)
    for item in items:
        if isinstance(item, BadRow):
            batch.bad.append(item)
            continue
        try:
            added = Addition(batch, item.line)
            for row in item.rows:
                add(added, row)
        except RowRefused as refused:
            batch.bad.append(BadRow(item.line, str(refused)))
        else:
            added.keep()
    return batch


# ---- adding rows, one entry at a time --------------------------------------------------------


def add(added: Addition, row: Row) -> None:
    if isinstance(row, ComparisonRow):
        add_comparison(added, row)
    elif isinstance(row, ResponseRow):
        query = add_query(added, row.query)
        add_response(added, query, row.candidate, row.response, row.metadata)
    elif isinstance(row, VerdictRow):
        add_verdict(added, row)
    elif isinstance(row, ScoreRow):
        add_score(added, row)


def add_query(added: Addition, part: QueryPart) -> Query:
    query = new_query(added, part)
    found = added.find(("query", part.key))
    if found is None:
        added.put(("query", part.key), query, query_word(query))
        return query
    assert isinstance(found.row, Query)
    refuse_other_query(found.row, part, query, found.where)
    return found.row


def new_query(added: Addition, part: QueryPart) -> Query:
    return Query(
        evaluation=added.batch.around.evaluation,
        source_import=added.batch.around.importing,
        key=part.key,
        cluster=part.cluster,
        messages=list(part.messages),
        text=text_of(part.messages),
        context=part.context,
        reference=part.reference,
        category=part.category,
        metadata=dict(part.metadata),
        sha256=content_sha256([part.messages, part.context, part.reference]),
    )


def refuse_other_query(known: Query, part: QueryPart, told: Query, where: str) -> None:
    """The same id must mean the same query. What a row leaves out it does not contradict."""
    if told.sha256 != known.sha256 and not part.is_stand_in:
        raise RowRefused(f"query “{told.key}” stands {where} with another text")
    if told.cluster not in (known.cluster, told.key):
        raise RowRefused(f"query “{told.key}” stands {where} with another cluster")
    if told.category not in (known.category, ""):
        raise RowRefused(f"query “{told.key}” stands {where} with another category")


def add_response(added: Addition, query: Query, name: str, messages: Messages, metadata: Mapping[str, Any]) -> Response:
    around = added.batch.around
    candidate = around.candidates.get(name)
    if candidate is None:
        candidate = added.name(around.candidates, name, Candidate(evaluation=around.evaluation, name=name))
    response = Response(
        query=query,
        candidate=candidate,
        source_import=around.importing,
        messages=list(messages),
        sha256=content_sha256(messages),
        characters=len(text_of(messages)),
        metadata=dict(metadata),
    )
    key = key_of_response(response)
    found = added.find(key)
    if found is not None and isinstance(found.row, Response):
        return found.row
    if found is None:
        added.put(key, response)
    added.responses.append(response)
    return response


def add_comparison(added: Addition, row: ComparisonRow) -> None:
    query = add_query(added, row.query)
    first = add_response(added, query, row.candidate_a, row.response_a, {})
    second = add_response(added, query, row.candidate_b, row.response_b, {})
    comparison = comparison_of(
        query,
        first,
        second,
        origin=ComparisonOrigin.IMPORTED,
        source_import=added.batch.around.importing,
        metadata=dict(row.metadata),
    )
    key = key_of_comparison(comparison)
    found = added.find(key)
    if found is None:
        added.put(key, comparison)
    if found is None or found.row is None:
        added.comparisons.append(comparison)
    added.turned = added.turned or comparison.turned


def add_verdict(added: Addition, row: VerdictRow) -> None:
    comparison = comparison_meant(added, row)
    told = as_stored(row, comparison)
    added.turned = added.turned or told is not row
    rater = rater_meant(added, told)
    if told.choice in tuple(CallState):
        add_failure(added, told, comparison, rater)
    else:
        add_choice(added, told, comparison, rater)


def add_choice(added: Addition, told: VerdictRow, comparison: Comparison, rater: Rater) -> None:
    aspect = aspect_meant(added, told)
    refuse_second_way(added, rater, aspect, Score)
    verdict = Verdict(
        rater=rater,
        comparison=comparison,
        aspect=aspect,
        sample=told.sample or 0,
        shown=told.shown,
        choice=Choice.TIE if told.choice == INCONSISTENT else told.choice,
        inconsistent=told.choice == INCONSISTENT,
        source_import=added.batch.around.importing,
        rationale=told.rationale,
        note=told.note,
    )
    if told.created_at:
        verdict.created_at = moment(told.created_at)
    put_or_refuse(added, key_of_verdict(verdict), verdict, verdict_word(verdict))


def add_failure(added: Addition, row: VerdictRow, comparison: Comparison, rater: Rater) -> None:
    """A judge's failure is a call without an answer: one for all aspects it was asked about."""
    aspect_meant(added, row)
    assert rater.judge is not None
    call = Call(
        judge=rater.judge,
        comparison=comparison,
        shown=row.shown,
        sample=row.sample or 0,
        source_import=added.batch.around.importing,
        state=row.choice,
        rationale=row.rationale,
    )
    put_or_refuse(added, key_of_call(comparison, rater, row.shown, call.sample), call, row.choice)


def put_or_refuse(added: Addition, key: Key, row: models.Model, word: str) -> None:
    found = added.find(key)
    if found is None:
        added.put(key, row, word)
    elif found.word != word:
        raise RowRefused(f"the same verdict stands {found.where} with the choice {found.word}, not {word}")


def moment(text: str) -> datetime:
    told = datetime.fromisoformat(text)
    return told if told.tzinfo else told.replace(tzinfo=UTC)


# ---- what a verdict row means by its names ---------------------------------------------------


def comparison_meant(added: Addition, row: VerdictRow) -> Comparison:
    known = [*added.batch.comparisons.get(row.query_key, []), *added.comparisons]
    matching = [one for one in known if one.query.key == row.query_key and is_meant(one, row)]
    if len(matching) == 1:
        refuse_other_texts(matching[0], row)
        return matching[0]
    named = f" of “{row.candidate_a}” and “{row.candidate_b}”" if row.candidate_a else ""
    if len(matching) > 1:
        raise RowRefused(f"query “{row.query_key}” has {len(matching)} comparisons{named}: which one is not clear")
    if added.find(("query", row.query_key)) is None:
        raise RowRefused(f"there is no query “{row.query_key}” in this evaluation")
    for name in (row.candidate_a, row.candidate_b):
        if name and name not in added.batch.around.candidates:
            raise RowRefused(f"there is no candidate “{name}” in this evaluation")
    raise RowRefused(f"query “{row.query_key}” has no comparison{named}")


def is_meant(comparison: Comparison, row: VerdictRow) -> bool:
    names = {comparison.response_a.candidate.name, comparison.response_b.candidate.name}
    return row.candidate_a is None or {row.candidate_a, row.candidate_b} == names


def refuse_other_texts(comparison: Comparison, row: VerdictRow) -> None:
    """Where a file joins by row number alone, its texts must be those that are stored."""
    if row.expected_texts is None:
        return
    query, first, second = row.expected_texts
    stored = [comparison.response_a.sha256, comparison.response_b.sha256]
    expected = [content_sha256([{"role": "assistant", "content": text}]) for text in (first, second)]
    if comparison.query.text != query or (stored[::-1] if comparison.turned else stored) != expected:
        raise RowRefused(f"the texts are not those of query “{row.query_key}”: it is another file, or another order")


def as_stored(row: VerdictRow, comparison: Comparison) -> VerdictRow:
    """The row in terms of the comparison's A and B."""
    if row.candidate_a is None:
        return turned_round(row) if comparison.turned else row
    return sorted_by_name(row)


def aspect_meant(added: Addition, row: VerdictRow) -> Aspect:
    offered = added.batch.around.offered.get(row.aspect)
    if offered is None:
        added.imported_aspects.add(row.aspect)
    elif row.choice in tuple(Choice) and row.choice not in offered:
        raise RowRefused(f"the rubric does not offer {row.choice} for {row.aspect}")
    return named_aspect(added, row.aspect)


def in_batches(items: Iterator[Entry | BadRow], most: int) -> Iterator[list[Entry | BadRow]]:
    """Some entries at a time, so many that they add no more than about ``most`` rows to the database."""
    batch: list[Entry | BadRow] = []
    weight = 0
    for item in items:
        batch.append(item)
        weight += rows_brought(item)
        if weight >= most:
            yield batch
            batch, weight = [], 0
    if batch:
        yield batch


def rows_brought(item: Entry | BadRow) -> int:
    """A comparison brings its query and two responses, a response its query; a bad row is read all the same."""
    if isinstance(item, BadRow):
        return 1
    brought = {ComparisonRow: 4, ResponseRow: 2}
    return sum(brought.get(type(row), 1) for row in item.rows)
