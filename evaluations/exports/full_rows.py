"""Exported rows that hold everything that was said of a comparison."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from django.db.models import QuerySet

from evaluations.domain.choices import Choice
from evaluations.domain.roles import RaterKind
from evaluations.exports.chunk_reader import (
    ComparisonRow,
    ReviewRecord,
    VerdictRecord,
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
from evaluations.exports.labels import (
    build_exported_material,
    build_voted_label,
    format_moment,
    label_answers,
    label_choices,
    serialize_label,
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
    ExportedLabel,
    ExportedPerson,
    ExportedRow,
    ExportedSkip,
)
from evaluations.formats.preferences import find_counted_reviews
from evaluations.models.comparisons import Comparison
from evaluations.models.verdicts import Adjudication, Comment
from evaluations.verdicts.judge_choices import JudgeAnswers, collect_judge_answers, map_samples
from evaluations.verdicts.labels import decide_by_resolution
from evaluations.verdicts.score_choices import ImportedPreference


def iterate_full_rows(comparisons: "QuerySet[Comparison]", participants: Participants) -> Iterator[ExportedRow]:
    """All comparisons in order of creation, read by keyset: the same few queries for each chunk, constant memory."""
    for chunk in iterate_chunks(comparisons):
        yield from build_chunk_rows(chunk, participants)


def build_chunk_rows(chunk: Sequence[ComparisonRow], participants: Participants) -> Iterator[ExportedRow]:
    """Verdicts are read before the reviews and calls they came from: none is met without its own."""
    ids = [one.pk for one in chunk]
    verdicts, scores, preferred = (
        read_verdicts(ids, participants),
        read_review_scores(ids, participants),
        read_imported_preferences(ids, participants),
    )
    votes, words = read_packed_votes(ids, participants.judges), read_judge_texts(ids, participants)
    reviews, calls, scoring = (
        read_reviews(ids, participants),
        read_judge_calls(ids, participants),
        read_judge_scores(chunk, participants),
    )
    discussion = read_discussion(ids, participants.present)
    for one in chunk:
        by_rater, in_files = verdicts.get(one.pk, {}), preferred.get(one.pk, {})
        people: list[ExportedPerson] = []
        if by_rater or in_files or one.pk in scores:
            records = PeopleRecords(by_rater, scores.get(one.pk, {}), in_files)
            people = build_person_entries(one, records, reviews.saved, discussion.spans, participants)
        asked = calls.get(one.pk, {})
        places = map_samples(votes.get(one.pk, {}), asked)
        answers = collect_judge_answers(votes.get(one.pk, {}), asked, places, participants.groups)
        choosing = add_judge_texts(build_judge_entries(answers, asked, places, participants), words, one.pk, places)
        judges = (
            merge_scorers(choosing, build_scorer_entries(one, scoring, participants))
            if participants.scorers
            else choosing
        )
        settled = discussion.adjudications.get(one.pk, [])
        yield {
            **build_exported_material(one, participants),
            "labels": {
                **build_judge_labels(answers, judges, participants),
                **build_people_labels(people, settled, participants),
            },
            "adjudications": {
                participants.aspects[by.aspect_id]: build_adjudication_entry(by, participants) for by in settled
            },
            "comments": [build_comment_entry(comment, participants) for comment in discussion.comments.get(one.pk, ())],
            "gold": build_gold_entries(by_rater, in_files, participants) if by_rater or in_files else [],
            "judges": sorted(judges.values(), key=itemgetter("judge")),
            "people": people,
            "skipped": [
                serialize_skip(review, participants)
                for review in sort_by_reviewer(reviews.skipped.get(one.pk, ()), participants)
            ],
        }


def build_people_labels(
    people: Sequence[ExportedPerson], settled: Sequence[Adjudication], participants: Participants
) -> dict[str, ExportedLabel]:
    """Labels by people, made of records that were read already; equal to those of verdicts.labels."""
    if not people and not settled:
        return {}
    votes = count_final_votes(people)
    labels = {aspect: build_voted_label(frozenset(counts.items())) for aspect, counts in votes.items()}
    for one in settled:
        key, by = participants.aspects[one.aspect_id], participants.username(one.user.username)
        labels[key] = serialize_label(decide_by_resolution(Choice(one.choice), by, votes.get(key, {})))
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


def build_adjudication_entry(one: Adjudication, participants: Participants) -> ExportedAdjudication:
    by = participants.username(one.user.username)
    return {"choice": one.choice, "reason": one.reason, "by": by, "at": format_moment(one.changed_at)}


def build_comment_entry(comment: Comment, participants: Participants) -> ExportedComment:
    return {
        "author": participants.username(comment.user.username),
        "aspect": participants.aspects.get(comment.aspect_id or 0),
        "text": participants.words(comment.text),
        "at": format_moment(comment.created_at),
    }


def sort_by_reviewer(reviews: Sequence[ReviewRecord], participants: Participants) -> list[ReviewRecord]:
    """Here and not by the database, whose order of letters is its own."""
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
    spoken: dict[int, list[VerdictRecord]] = {**{pk: [] for pk in preferred}, **verdicts}
    gold: list[ExportedGold] = []
    for rater, own in participants.select_raters(RaterKind.GOLD, spoken):
        entries: list[dict[str, str]] = []
        derived = [(participants.aspects[one.aspect], str(one.choice)) for one in preferred.get(rater.pk, ())]
        for aspect, choice in (*((participants.aspects[one.aspect_id], one.choice) for one in own), *derived):
            if any(entry.get(aspect) == choice for entry in entries):
                continue
            place = next((entry for entry in entries if aspect not in entry), None)
            if place is None:
                entries.append(place := {})
            place[aspect] = choice
        gold += [{"rater": rater.name, "choices": choices} for choices in entries]
    return gold
