"""Exported rows of comparisons: with their labels alone, or with everything about them."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from operator import itemgetter

import orjson
from django.db.models import QuerySet

from evaluations.domain.choices import Choice, LabelSource
from evaluations.domain.roles import RaterKind
from evaluations.domain.texts import Message
from evaluations.exports.chunk_reader import (
    ComparisonRow,
    ReviewRecord,
    VerdictRecord,
    filter_within,
    iterate_chunks,
    read_discussion,
    read_imported_preferences,
    read_judge_calls,
    read_judge_scores,
    read_judge_texts,
    read_packed_votes,
    read_review_scores,
    read_reviews,
    read_verdicts,
)
from evaluations.exports.participants import Participants
from evaluations.exports.rater_entries import (
    PeopleRecords,
    add_judge_texts,
    build_judge_entries,
    build_person_entries,
    build_scorer_entries,
    merge_scorers,
)
from evaluations.formats.exported_rows import (
    ExportedAdjudication,
    ExportedComment,
    ExportedGold,
    ExportedJudge,
    ExportedJudgeChoice,
    ExportedLabel,
    ExportedMaterial,
    ExportedPerson,
    ExportedRow,
    ExportedSkip,
    LabelledRow,
)
from evaluations.formats.preferences import find_counted_reviews
from evaluations.models.comparisons import Comparison
from evaluations.models.verdicts import Adjudication, Comment, Label
from evaluations.verdicts.judge_choices import JudgeAnswers, collect_judge_answers, fold_group_choices, map_samples
from evaluations.verdicts.labels import (
    DecidedLabel,
    decide_by_resolution,
    decide_by_votes,
    decide_human_labels,
    read_label_judge_choices,
)
from evaluations.verdicts.score_choices import ImportedPreference

MAX_CACHED_PATTERNS = 100_000
COUNTED_SOURCES = (LabelSource.SINGLE, LabelSource.MAJORITY)  # with all votes for the choice where they are unanimous

LabelsByAspect = dict[str, ExportedLabel]


def iterate_labelled_rows(comparisons: "QuerySet[Comparison]", participants: Participants) -> Iterator[LabelledRow]:
    for chunk in iterate_chunks(comparisons):
        ids = [row.pk for row in chunk]
        of_people, of_judges = read_people_labels(ids, participants), read_judge_labels(ids, participants)
        for row in chunk:
            labels = {**of_judges.get(row.pk, {}), **of_people.get(row.pk, {})}
            yield {**build_exported_material(row, participants), "labels": labels}


def read_people_labels(ids: Sequence[int], participants: Participants) -> Mapping[int, LabelsByAspect]:
    """Labels by people: stored labels if they are unambiguous and current, else counted from the votes."""
    if participants.present.untallied:
        return recount_labels(ids, participants)
    labels_by_comparison: dict[int, LabelsByAspect] = defaultdict(dict)
    unclear: set[int] = set()
    labels = Label.objects.filter(filter_within(ids)).values_list(
        "comparison_id", "aspect_id", "choice", "source", "votes", "unanimous"
    )
    for pk, aspect, choice, source, votes, unanimous in labels:
        if not unanimous or source not in COUNTED_SOURCES:
            unclear.add(pk)
        elif aspect in participants.aspects:
            labels_by_comparison[pk][participants.aspects[aspect]] = build_unanimous_label(choice, source, votes)
    return {**labels_by_comparison, **recount_labels(sorted(unclear.intersection(ids)), participants)}


@lru_cache(maxsize=MAX_CACHED_PATTERNS)
def build_unanimous_label(choice: str, source: str, votes: int) -> ExportedLabel:
    """A label with unanimous votes, cached: do not modify it."""
    return {"choice": choice, "source": source, "n": votes, "votes": {choice: votes}, "by": None}


def recount_labels(ids: Sequence[int], participants: Participants) -> Mapping[int, LabelsByAspect]:
    if not ids:
        return {}
    counted = decide_human_labels(participants.evaluation, ids)
    return {
        pk: {key: rename_adjudicator(serialize_label(label), participants) for key, label in by_aspect.items()}
        for pk, by_aspect in counted.items()
    }


def rename_adjudicator(label: ExportedLabel, participants: Participants) -> ExportedLabel:
    if label["by"] is not None:
        label["by"] = participants.get_username(label["by"])
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


def read_judge_labels(ids: Sequence[int], participants: Participants) -> Mapping[int, LabelsByAspect]:
    bench = participants.bench.raters.keys() & participants.judges.keys()
    if not bench:
        return {}
    if any(rater.pk in bench for rater in participants.scorers):
        return label_scored_comparisons(ids, participants)
    votes, calls = read_packed_votes(ids, bench), read_judge_calls(ids, participants, bench)
    labels: dict[int, LabelsByAspect] = {}
    for pk, by_rater in votes.items():
        calls_by_rater = calls.get(pk, {})
        answers = collect_judge_answers(
            by_rater, calls_by_rater, map_samples(by_rater, calls_by_rater), participants.groups
        )
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
    allowed = [(pk, own) for pk, own in answers.items() if pk in participants.bench.raters]
    labels: LabelsByAspect = {}
    for place in range(len(participants.groups)):
        pattern = (place, *[(pk, orders, sheet[place]) for pk, (orders, sheet) in allowed])
        cached = participants.patterns.get(pattern)
        if cached is None:
            group = participants.groups[place]
            cached = label_choices(
                {pk: fold_group_choices(sheet[place], orders, group) for pk, (orders, sheet) in allowed},
                participants,
            )
            if len(participants.patterns) < MAX_CACHED_PATTERNS:
                participants.patterns[pattern] = cached
        labels.update(cached)
    return labels


def label_choices(
    by_rater: Mapping[int, Mapping[str, ExportedJudgeChoice]], participants: Participants
) -> LabelsByAspect:
    labels: LabelsByAspect = {}
    allowed = {pk: choices for pk, choices in by_rater.items() if pk in participants.bench.raters}
    for aspect in {aspect for choices in allowed.values() for aspect in choices}:
        answers = {pk: choices[aspect]["choice"] for pk, choices in allowed.items() if aspect in choices}
        label = participants.bench.label({pk: Choice(choice) for pk, choice in answers.items() if choice})
        if label is not None:
            labels[aspect] = serialize_label(label)
    return labels


def build_exported_material(row: ComparisonRow, participants: Participants) -> ExportedMaterial:
    """The fields of a comparison file. A query of one turn is exported as text, others as messages."""
    messages = parse_messages(row.messages)
    single = len(messages) == 1 and messages[0]["role"] == "user"
    return {
        "query_id": row.key,
        "cluster": row.cluster,
        "category": row.category,
        "query": messages[0]["content"] if single else None,
        "messages": None if single else messages,
        "context": row.context,
        "reference": row.reference,
        "candidate_a": participants.candidates[row.candidate_a],
        "response_a": simplify_response(parse_messages(row.response_a)),
        "candidate_b": participants.candidates[row.candidate_b],
        "response_b": simplify_response(parse_messages(row.response_b)),
        "metadata": merge_metadata(row),
    }


def parse_messages(text: str) -> list[Message]:
    """Roles and contents are texts, on which both JSON parsers agree; the second one also reads lone surrogates."""
    try:
        return orjson.loads(text)  # type: ignore[no-any-return]
    except orjson.JSONDecodeError:
        return json.loads(text)  # type: ignore[no-any-return]


def merge_metadata(row: ComparisonRow) -> dict[str, object]:
    """The metadata of query and comparison, with that of each response under its side."""
    if row.query_metadata == row.metadata == row.metadata_a == row.metadata_b == "{}":
        return {}
    sides = {"response_a": json.loads(row.metadata_a), "response_b": json.loads(row.metadata_b)}
    return {
        **json.loads(row.query_metadata),
        **json.loads(row.metadata),
        **{side: metadata for side, metadata in sides.items() if metadata},
    }


def simplify_response(messages: list[Message]) -> str | list[Message]:
    if len(messages) == 1 and messages[0]["role"] == "assistant":
        return messages[0]["content"]
    return messages


def format_moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")


# ---- rows with everything


def iterate_full_rows(comparisons: "QuerySet[Comparison]", participants: Participants) -> Iterator[ExportedRow]:
    """All comparisons in order of creation, with the same few queries for each chunk."""
    for chunk in iterate_chunks(comparisons):
        yield from build_chunk_rows(chunk, participants)


def build_chunk_rows(chunk: Sequence[ComparisonRow], participants: Participants) -> Iterator[ExportedRow]:
    """Verdicts are read before their reviews and calls, so that none lacks its own."""
    ids = [row.pk for row in chunk]
    verdicts, scores = read_verdicts(ids, participants), read_review_scores(ids, participants)
    preferred = read_imported_preferences(ids, participants)
    votes, judge_texts = read_packed_votes(ids, participants.judges), read_judge_texts(ids, participants)
    reviews, calls = read_reviews(ids, participants), read_judge_calls(ids, participants)
    scoring = read_judge_scores(chunk, participants)
    discussion = read_discussion(ids, participants.present)
    for row in chunk:
        by_rater, own_preferences = verdicts.get(row.pk, {}), preferred.get(row.pk, {})
        people: list[ExportedPerson] = []
        if by_rater or own_preferences or row.pk in scores:
            records = PeopleRecords(by_rater, scores.get(row.pk, {}), own_preferences)
            people = build_person_entries(row, records, reviews.saved, discussion.spans, participants)
        calls_by_rater = calls.get(row.pk, {})
        positions = map_samples(votes.get(row.pk, {}), calls_by_rater)
        answers = collect_judge_answers(votes.get(row.pk, {}), calls_by_rater, positions, participants.groups)
        judges = build_judge_entries(answers, calls_by_rater, positions, participants)
        add_judge_texts(judges, judge_texts, row.pk, positions)
        if participants.scorers:
            judges = merge_scorers(judges, build_scorer_entries(row, scoring, participants))
        adjudications = discussion.adjudications.get(row.pk, [])
        yield {
            **build_exported_material(row, participants),
            "labels": {
                **build_judge_labels(answers, judges, participants),
                **build_people_labels(people, adjudications, participants),
            },
            "adjudications": {
                participants.aspects[by.aspect_id]: build_adjudication_entry(by, participants) for by in adjudications
            },
            "comments": [build_comment_entry(comment, participants) for comment in discussion.comments.get(row.pk, ())],
            "gold": build_gold_entries(by_rater, own_preferences, participants) if by_rater or own_preferences else [],
            "judges": sorted(judges.values(), key=itemgetter("judge")),
            "people": people,
            "skipped": [
                serialize_skip(review, participants)
                for review in sort_by_reviewer(reviews.skipped.get(row.pk, ()), participants)
            ],
        }


def build_people_labels(
    people: Sequence[ExportedPerson], adjudications: Sequence[Adjudication], participants: Participants
) -> dict[str, ExportedLabel]:
    """Labels by people, made of records that were read already; equal to those of verdicts.labels."""
    if not people and not adjudications:
        return {}
    votes = count_final_votes(people)
    labels = {aspect: build_voted_label(frozenset(counts.items())) for aspect, counts in votes.items()}
    for adjudication in adjudications:
        key, by = participants.aspects[adjudication.aspect_id], participants.get_username(adjudication.user.username)
        labels[key] = serialize_label(decide_by_resolution(Choice(adjudication.choice), by, votes.get(key, {})))
    return labels


def build_judge_labels(
    answers: Mapping[int, JudgeAnswers], judges: Mapping[int, ExportedJudge], participants: Participants
) -> dict[str, ExportedLabel]:
    """The judges' label of each aspect, as if no person had voted on it."""
    if not participants.bench.raters:
        return {}
    if participants.scorers:
        return label_choices({pk: judge["choices"] for pk, judge in judges.items()}, participants)
    return label_answers(answers, participants)


def count_final_votes(people: Sequence[ExportedPerson]) -> Mapping[str, Counter[Choice]]:
    """Votes by aspect, counted from records that were read already; equal to those of verdicts."""
    return {
        aspect: Counter(Choice(str(people[place]["choices"][aspect]["final"])) for place in places)
        for aspect, places in find_counted_reviews(people).items()
    }


def build_adjudication_entry(adjudication: Adjudication, participants: Participants) -> ExportedAdjudication:
    by = participants.get_username(adjudication.user.username)
    return {
        "choice": adjudication.choice,
        "category": adjudication.category,
        "reason": adjudication.reason,
        "by": by,
        "at": format_moment(adjudication.changed_at),
        "in_bulk": adjudication.in_bulk,
    }


def build_comment_entry(comment: Comment, participants: Participants) -> ExportedComment:
    return {
        "author": participants.get_username(comment.user.username),
        "aspect": participants.aspects.get(comment.aspect_id or 0),
        "text": participants.rename_mentions(comment.text),
        "at": format_moment(comment.created_at),
    }


def sort_by_reviewer(reviews: Sequence[ReviewRecord], participants: Participants) -> list[ReviewRecord]:
    """By name, then by id. Databases sort names differently."""
    return sorted(reviews, key=lambda review: (participants.people[review.rater_id], review.pk))


def serialize_skip(review: ReviewRecord, participants: Participants) -> ExportedSkip:
    return {
        "rater": participants.people[review.rater_id],
        "rubric": participants.rubrics[review.rubric_version_id],
        "reason": review.skip_reason,
        "at": format_moment(review.finished_at) if review.finished_at else None,
    }


def build_gold_entries(
    verdicts: Mapping[int, list[VerdictRecord]],
    preferred: Mapping[int, list[ImportedPreference]],
    participants: Participants,
) -> list[ExportedGold]:
    """Gold choices, imported or derived from imported scores; contradictory ones in separate entries."""
    by_rater: dict[int, list[VerdictRecord]] = {**{pk: [] for pk in preferred}, **verdicts}
    gold: list[ExportedGold] = []
    for rater, own in participants.select_raters(RaterKind.GOLD, by_rater):
        entries: list[dict[str, str]] = []
        chosen = [(verdict.aspect_id, verdict.choice) for verdict in own]
        derived = [(preference.aspect, str(preference.choice)) for preference in preferred.get(rater.pk, ())]
        for aspect_id, choice in (*chosen, *derived):
            aspect = participants.aspects[aspect_id]
            if any(entry.get(aspect) == choice for entry in entries):
                continue
            target = next((entry for entry in entries if aspect not in entry), None)
            if target is None:
                entries.append(target := {})
            target[aspect] = choice
        gold += [{"rater": rater.name, "choices": choices} for choices in entries]
    return gold
