"""Exported rows that hold comparisons with their labels alone."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache

import orjson
from django.db.models import QuerySet

from evaluations.domain.choices import Choice, LabelSource
from evaluations.domain.texts import Message
from evaluations.exports.chunk_reader import (
    ComparisonRow,
    filter_within,
    iterate_chunks,
    read_judge_calls,
    read_packed_votes,
)
from evaluations.exports.participants import Participants
from evaluations.formats.exported_rows import ExportedJudgeChoice, ExportedLabel, ExportedMaterial, LabelledRow
from evaluations.models.comparisons import Comparison
from evaluations.models.verdicts import Label
from evaluations.verdicts.judge_choices import JudgeAnswers, collect_judge_answers, fold_group_choices, map_samples
from evaluations.verdicts.labels import DecidedLabel, decide_by_votes, decide_human_labels, read_label_judge_choices

MAX_CACHED_PATTERNS = 100_000
COUNTED_SOURCES = (LabelSource.SINGLE, LabelSource.MAJORITY)  # with all votes for the choice where they are unanimous

LabelsByAspect = dict[str, ExportedLabel]


def iterate_labelled_rows(comparisons: "QuerySet[Comparison]", participants: Participants) -> Iterator[LabelledRow]:
    for chunk in iterate_chunks(comparisons):
        ids = [one.pk for one in chunk]
        of_people, of_judges = read_people_labels(ids, participants), read_judge_labels(ids, participants)
        for one in chunk:
            labels = {**of_judges.get(one.pk, {}), **of_people.get(one.pk, {})}
            yield {**build_exported_material(one, participants), "labels": labels}


# ---- what people say ------------------------------------------------------------------------


def read_people_labels(ids: Sequence[int], participants: Participants) -> Mapping[int, LabelsByAspect]:
    """Labels by people: stored labels if they are unambiguous and current, else counted from the votes."""
    if participants.present.untallied:
        return recount_labels(ids, participants)
    found: dict[int, LabelsByAspect] = defaultdict(dict)
    unclear: set[int] = set()
    labels = Label.objects.filter(filter_within(ids)).values_list(
        "comparison_id", "aspect_id", "choice", "source", "votes", "unanimous"
    )
    for pk, aspect, choice, source, votes, unanimous in labels:
        if not unanimous or source not in COUNTED_SOURCES:
            unclear.add(pk)
        elif aspect in participants.aspects:
            found[pk][participants.aspects[aspect]] = build_unanimous_label(choice, source, votes)
    return {**found, **recount_labels(sorted(unclear.intersection(ids)), participants)}


@lru_cache(maxsize=MAX_CACHED_PATTERNS)
def build_unanimous_label(choice: str, source: str, votes: int) -> ExportedLabel:
    """A label with unanimous votes, cached: do not modify it."""
    return {"choice": choice, "source": source, "n": votes, "votes": {choice: votes}, "by": None}


def recount_labels(ids: Sequence[int], participants: Participants) -> Mapping[int, LabelsByAspect]:
    if not ids:
        return {}
    counted = decide_human_labels(participants.evaluation, ids)
    return {
        pk: {key: rename_adjudicator(serialize_label(one), participants) for key, one in by_aspect.items()}
        for pk, by_aspect in counted.items()
    }


def rename_adjudicator(label: ExportedLabel, participants: Participants) -> ExportedLabel:
    if label["by"] is not None:
        label["by"] = participants.username(label["by"])
    return label


@lru_cache(maxsize=MAX_CACHED_PATTERNS)
def build_voted_label(votes: frozenset[tuple[Choice, int]]) -> ExportedLabel:
    """The label that votes make, cached: do not modify it."""
    return serialize_label(decide_by_votes(dict(sorted(votes))))


def serialize_label(label: DecidedLabel) -> ExportedLabel:
    return {
        "choice": label.choice.value if label.choice else None,
        "source": label.source.value,
        "n": label.n,
        "votes": {choice.value: count for choice, count in label.votes.items()},
        "by": label.by or None,
    }


# ---- what judges say where no person did ----------------------------------------------------


def read_judge_labels(ids: Sequence[int], participants: Participants) -> Mapping[int, LabelsByAspect]:
    bench = participants.bench.raters.keys() & participants.judges.keys()
    if not bench:
        return {}
    if any(rater.pk in bench for rater in participants.scorers):
        return label_scored_comparisons(ids, participants)
    votes, calls = read_packed_votes(ids, bench), read_judge_calls(ids, participants, bench)
    labels: dict[int, LabelsByAspect] = {}
    for pk, by_rater in votes.items():
        asked = calls.get(pk, {})
        answers = collect_judge_answers(by_rater, asked, map_samples(by_rater, asked), participants.groups)
        labels[pk] = label_answers(answers, participants)
    return labels


def label_scored_comparisons(ids: Sequence[int], participants: Participants) -> Mapping[int, LabelsByAspect]:
    """Labels by judges if at least one of them rates single responses."""
    labels: dict[int, LabelsByAspect] = defaultdict(dict)
    for (pk, aspect), of_raters in read_label_judge_choices(participants.bench, ids).items():
        if label := participants.bench.label(of_raters):
            labels[pk][aspect] = serialize_label(label)
    return labels


def label_answers(answers: Mapping[int, JudgeAnswers], participants: Participants) -> LabelsByAspect:
    """The labels that judges' answers on one comparison make, cached: do not modify them."""
    may = [(pk, own) for pk, own in answers.items() if pk in participants.bench.raters]
    found: LabelsByAspect = {}
    for place in range(len(participants.groups)):
        pattern = (place, *[(pk, asked, sheet[place]) for pk, (asked, sheet) in may])
        known = participants.patterns.get(pattern)
        if known is None:
            group = participants.groups[place]
            known = label_choices(
                {pk: fold_group_choices(sheet[place], asked, group) for pk, (asked, sheet) in may}, participants
            )
            if len(participants.patterns) < MAX_CACHED_PATTERNS:
                participants.patterns[pattern] = known
        found.update(known)
    return found


def label_choices(
    by_rater: Mapping[int, Mapping[str, ExportedJudgeChoice]], participants: Participants
) -> LabelsByAspect:
    found: LabelsByAspect = {}
    may = {pk: choices for pk, choices in by_rater.items() if pk in participants.bench.raters}
    for aspect in {aspect for choices in may.values() for aspect in choices}:
        answers = {pk: choices[aspect]["choice"] for pk, choices in may.items() if aspect in choices}
        label = participants.bench.label({pk: Choice(choice) for pk, choice in answers.items() if choice})
        if label is not None:
            found[aspect] = serialize_label(label)
    return found


# ---- material -------------------------------------------------------------------------------


def build_exported_material(one: ComparisonRow, participants: Participants) -> ExportedMaterial:
    """The names of comparison files: a query of one turn is its text, any other its messages."""
    messages = parse_messages(one.messages)
    single = len(messages) == 1 and messages[0]["role"] == "user"
    return {
        "query_id": one.key,
        "cluster": one.cluster,
        "category": one.category,
        "query": messages[0]["content"] if single else None,
        "messages": None if single else messages,
        "context": one.context,
        "reference": one.reference,
        "candidate_a": participants.candidates[one.candidate_a],
        "response_a": simplify_response(parse_messages(one.response_a)),
        "candidate_b": participants.candidates[one.candidate_b],
        "response_b": simplify_response(parse_messages(one.response_b)),
        "metadata": merge_metadata(one),
    }


def parse_messages(text: str) -> list[Message]:
    """Roles and contents are texts: nothing in them that one reader of JSON takes for another thing than the other."""
    try:
        return orjson.loads(text)  # type: ignore[no-any-return]
    except orjson.JSONDecodeError:
        return json.loads(text)  # type: ignore[no-any-return]


def merge_metadata(one: ComparisonRow) -> dict[str, object]:
    """The metadata of query and comparison, with that of each response under its side."""
    if one.query_metadata == one.metadata == one.metadata_a == one.metadata_b == "{}":
        return {}
    sides = {"response_a": json.loads(one.metadata_a), "response_b": json.loads(one.metadata_b)}
    return {
        **json.loads(one.query_metadata),
        **json.loads(one.metadata),
        **{side: metadata for side, metadata in sides.items() if metadata},
    }


def simplify_response(messages: list[Message]) -> str | list[Message]:
    if len(messages) == 1 and messages[0]["role"] == "assistant":
        return messages[0]["content"]
    return messages


def format_moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")
