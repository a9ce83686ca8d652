"""Exported rows that hold everything that was said of a comparison."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

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
    build_judge_answers,
    build_judge_entries,
    build_person_entries,
    build_scorer_entries,
    map_samples,
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
from evaluations.verdicts.judge_choices import JudgeAnswers
from evaluations.verdicts.labels import decide_by_resolution
from evaluations.verdicts.score_choices import ImportedPreference


def iterate_full_rows(comparisons: "QuerySet[Comparison]", cast: Participants) -> Iterator[ExportedRow]:
    """All comparisons in order of creation, read by keyset: the same few queries for each chunk, constant memory."""
    for chunk in iterate_chunks(comparisons):
        yield from build_chunk_rows(chunk, cast)


def build_chunk_rows(chunk: Sequence[ComparisonRow], cast: Participants) -> Iterator[ExportedRow]:
    """Verdicts are read before the reviews and calls they came from: none is met without its own."""
    ids = [one.pk for one in chunk]
    said, scores, preferred = (
        read_verdicts(ids, cast),
        read_review_scores(ids, cast),
        read_imported_preferences(ids, cast),
    )
    votes, words = read_packed_votes(ids, cast.judges), read_judge_texts(ids, cast)
    reviews, calls, scoring = read_reviews(ids, cast), read_judge_calls(ids, cast), read_judge_scores(chunk, cast)
    discussion = read_discussion(ids, cast.present)
    for one in chunk:
        by_rater, in_files = said.get(one.pk, {}), preferred.get(one.pk, {})
        people: list[ExportedPerson] = []
        if by_rater or in_files or one.pk in scores:
            given = PeopleRecords(by_rater, scores.get(one.pk, {}), in_files)
            people = build_person_entries(one, given, reviews.saved, discussion.spans, cast)
        asked = calls.get(one.pk, {})
        places = map_samples(votes.get(one.pk, {}), asked)
        answers = build_judge_answers(votes.get(one.pk, {}), asked, places, cast)
        choosing = add_judge_texts(build_judge_entries(answers, asked, places, cast), words, one.pk, places)
        judges = merge_scorers(choosing, build_scorer_entries(one, scoring, cast)) if cast.scorers else choosing
        settled = discussion.adjudications.get(one.pk, [])
        yield {
            **build_exported_material(one, cast),
            "labels": {**build_judge_labels(answers, judges, cast), **build_people_labels(people, settled, cast)},
            "adjudications": {cast.aspects[by.aspect_id]: build_adjudication_entry(by, cast) for by in settled},
            "comments": [build_comment_entry(comment, cast) for comment in discussion.comments.get(one.pk, ())],
            "gold": build_gold_entries(by_rater, in_files, cast) if by_rater or in_files else [],
            "judges": sorted(judges.values(), key=get_judge_name),
            "people": people,
            "skipped": [
                serialize_skip(review, cast) for review in sort_by_reviewer(reviews.skipped.get(one.pk, ()), cast)
            ],
        }


def get_judge_name(judge: ExportedJudge) -> str:
    return judge["judge"]


def build_people_labels(
    people: Sequence[ExportedPerson], settled: Sequence[Adjudication], cast: Participants
) -> dict[str, ExportedLabel]:
    """Labels by people, made of records that were read already; equal to those of verdicts.labels."""
    if not people and not settled:
        return {}
    votes = count_final_votes(people)
    told = {aspect: build_voted_label(frozenset(given.items())) for aspect, given in votes.items()}
    for one in settled:
        key, by = cast.aspects[one.aspect_id], cast.username(one.user.username)
        told[key] = serialize_label(decide_by_resolution(Choice(one.choice), by, votes.get(key, {})))
    return told


def build_judge_labels(
    answers: Mapping[int, JudgeAnswers], judges: Mapping[int, ExportedJudge], cast: Participants
) -> dict[str, ExportedLabel]:
    """The judges' label of each aspect, as if no person had voted on it."""
    if not cast.bench.raters:
        return {}
    if cast.scorers:
        return label_choices({pk: judge["choices"] for pk, judge in judges.items()}, cast)
    return label_answers(answers, cast)


def count_final_votes(people: Sequence[ExportedPerson]) -> Mapping[str, Counter[Choice]]:
    """Votes by aspect, counted from records that were read already; equal to those of verdicts."""
    return {
        aspect: Counter(Choice(str(people[place]["choices"][aspect]["final"])) for place in places)
        for aspect, places in find_counted_reviews(people).items()
    }


def build_adjudication_entry(one: Adjudication, cast: Participants) -> ExportedAdjudication:
    by = cast.username(one.user.username)
    return {"choice": one.choice, "reason": one.reason, "by": by, "at": format_moment(one.changed_at)}


def build_comment_entry(comment: Comment, cast: Participants) -> ExportedComment:
    return {
        "author": cast.username(comment.user.username),
        "aspect": cast.aspects.get(comment.aspect_id or 0),
        "text": cast.words(comment.text),
        "at": format_moment(comment.created_at),
    }


def sort_by_reviewer(reviews: Sequence[ReviewRecord], cast: Participants) -> list[ReviewRecord]:
    """Here and not by the database, whose order of letters is its own."""
    return sorted(reviews, key=lambda review: (cast.people[review.rater_id], review.pk))


def serialize_skip(review: ReviewRecord, cast: Participants) -> ExportedSkip:
    return {
        "rater": cast.people[review.rater_id],
        "rubric": cast.rubrics[review.rubric_version_id],
        "reason": review.skip_reason,
        "at": format_moment(review.finished_at) if review.finished_at else None,
    }


def build_gold_entries(
    said: Mapping[int, list[VerdictRecord]], preferred: Mapping[int, list[ImportedPreference]], cast: Participants
) -> list[ExportedGold]:
    """Gold choices, imported or derived from imported scores; contradictory ones in separate entries."""
    spoken: dict[int, list[VerdictRecord]] = {**{pk: [] for pk in preferred}, **said}
    gold: list[ExportedGold] = []
    for rater, given in cast.those(RaterKind.GOLD, spoken):
        entries: list[dict[str, str]] = []
        derived = [(cast.aspects[one.aspect], str(one.choice)) for one in preferred.get(rater.pk, ())]
        for aspect, choice in (*((cast.aspects[one.aspect_id], one.choice) for one in given), *derived):
            if any(entry.get(aspect) == choice for entry in entries):
                continue
            place = next((entry for entry in entries if aspect not in entry), None)
            if place is None:
                entries.append(place := {})
            place[aspect] = choice
        gold += [{"rater": rater.name, "choices": choices} for choices in entries]
    return gold
