"""What was collected of a comparison, composed into a row of an exported file."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from django.db.models import QuerySet

from evaluations.domain import Choice, RaterKind
from evaluations.formats import exported
from evaluations.formats.counted_votes import vote_holders
from evaluations.models import Adjudication, Comment, Comparison
from evaluations.services import labelling
from evaluations.services.exporting.casting import Cast
from evaluations.services.exporting.collecting import (
    Material,
    Passed,
    Said,
    ballots_of,
    calls_of,
    chunks,
    discussion_of,
    preferences_of,
    reviews_of,
    scores_of,
    scoring_of,
    verdicts_of,
    words_of_judges,
)
from evaluations.services.exporting.judged import (
    answers_of,
    judges_of,
    places_of,
    scorers_of,
    with_scorers,
    with_words,
)
from evaluations.services.exporting.labelled import (
    label_of,
    label_voted,
    labels_answered,
    labels_made,
    material_of,
    moment,
)
from evaluations.services.exporting.reviewed import SaidByPeople, people_of
from evaluations.services.exporting.unfolding import Answers
from evaluations.services.importing.preferring import Preference


def rows(comparisons: "QuerySet[Comparison]", cast: Cast) -> Iterator[exported.ExportedRow]:
    """Every comparison in the order of its making, read by keyset: the same few queries a chunk, memory flat."""
    for chunk in chunks(comparisons):
        yield from rows_of(chunk, cast)


def rows_of(chunk: Sequence[Material], cast: Cast) -> Iterator[exported.ExportedRow]:
    """Verdicts are read before the reviews and calls they came from: none is met without its own."""
    ids = [one.pk for one in chunk]
    said, scores, preferred = verdicts_of(ids, cast), scores_of(ids, cast), preferences_of(ids, cast)
    ballots, words = ballots_of(ids, cast.judges), words_of_judges(ids, cast)
    reviews, calls, scoring = reviews_of(ids, cast), calls_of(ids, cast), scoring_of(chunk, cast)
    discussion = discussion_of(ids, cast.present)
    for one in chunk:
        by_rater, in_files = said.get(one.pk, {}), preferred.get(one.pk, {})
        people: list[exported.Person] = []
        if by_rater or in_files or one.pk in scores:
            given = SaidByPeople(by_rater, scores.get(one.pk, {}), in_files)
            people = people_of(one, given, reviews.saved, discussion.spans, cast)
        asked = calls.get(one.pk, {})
        places = places_of(ballots.get(one.pk, {}), asked)
        answers = answers_of(ballots.get(one.pk, {}), asked, places, cast)
        choosing = with_words(judges_of(answers, asked, places, cast), words, one.pk, places)
        judges = with_scorers(choosing, scorers_of(one, scoring, cast)) if cast.scorers else choosing
        settled = discussion.adjudications.get(one.pk, [])
        yield {
            **material_of(one, cast),
            "labels": {**by_judges(answers, judges, cast), **labels_of_people(people, settled, cast)},
            "adjudications": {cast.aspects[by.aspect_id]: adjudication_of(by, cast) for by in settled},
            "comments": [comment_of(comment, cast) for comment in discussion.comments.get(one.pk, ())],
            "gold": gold_of(by_rater, in_files, cast) if by_rater or in_files else [],
            "judges": sorted(judges.values(), key=name_of),
            "people": people,
            "skipped": [skip_of(review, cast) for review in by_name(reviews.skipped.get(one.pk, ()), cast)],
        }


def name_of(judge: exported.Judge) -> str:
    return judge["judge"]


def labels_of_people(
    people: Sequence[exported.Person], settled: Sequence[Adjudication], cast: Cast
) -> dict[str, exported.Label]:
    """As `labelling.labels` has them, from what was read already."""
    if not people and not settled:
        return {}
    votes = votes_of(people)
    told = {aspect: label_voted(frozenset(given.items())) for aspect, given in votes.items()}
    for one in settled:
        key, by = cast.aspects[one.aspect_id], cast.username(one.user.username)
        told[key] = label_of(labelling.adjudicated(Choice(one.choice), by, votes.get(key, {})))
    return told


def by_judges(
    answers: Mapping[int, Answers], judges: Mapping[int, exported.Judge], cast: Cast
) -> dict[str, exported.Label]:
    """What judges make of each aspect, were it that no person has voted on it."""
    if not cast.bench.raters:
        return {}
    if cast.scorers:
        return labels_made({pk: judge["choices"] for pk, judge in judges.items()}, cast)
    return labels_answered(answers, cast)


def votes_of(people: Sequence[exported.Person]) -> Mapping[str, Counter[Choice]]:
    """As `tallying.votes_on` counts them, by aspect."""
    return {
        aspect: Counter(Choice(str(people[place]["choices"][aspect]["final"])) for place in places)
        for aspect, places in vote_holders(people).items()
    }


def adjudication_of(one: Adjudication, cast: Cast) -> exported.Adjudication:
    by = cast.username(one.user.username)
    return {"choice": one.choice, "reason": one.reason, "by": by, "at": moment(one.changed_at)}


def comment_of(comment: Comment, cast: Cast) -> exported.Comment:
    return {
        "author": cast.username(comment.user.username),
        "aspect": cast.aspects.get(comment.aspect_id or 0),
        "text": cast.words(comment.text),
        "at": moment(comment.created_at),
    }


def by_name(reviews: Sequence[Passed], cast: Cast) -> list[Passed]:
    """Here and not by the database, whose order of letters is its own."""
    return sorted(reviews, key=lambda review: (cast.people[review.rater_id], review.pk))


def skip_of(review: Passed, cast: Cast) -> exported.Skip:
    return {
        "rater": cast.people[review.rater_id],
        "rubric": cast.rubrics[review.rubric_version_id],
        "reason": review.skip_reason,
        "at": moment(review.finished_at) if review.finished_at else None,
    }


def gold_of(
    said: Mapping[int, list[Said]], preferred: Mapping[int, list[Preference]], cast: Cast
) -> list[exported.Gold]:
    """Choices as they came, and as its scores make them; those that contradict each other in entries of their own."""
    spoken: dict[int, list[Said]] = {**{pk: [] for pk in preferred}, **said}
    gold: list[exported.Gold] = []
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
