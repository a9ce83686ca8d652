"""What was collected of a comparison, composed into a row of an exported file."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet

from evaluations.domain import Choice, Message, RaterKind, ReviewState
from evaluations.formats import exported
from evaluations.models import Adjudication, Comment, Comparison, Review
from evaluations.services import labelling
from evaluations.services.exporting.collecting import (
    Cast,
    Material,
    Said,
    calls_of,
    discussion_of,
    preferences_of,
    read_chunk,
    reviews_of,
    scores_of,
    scoring_of,
    verdicts_of,
)
from evaluations.services.exporting.judged import judges_of, rubric_name, scorers_of, with_scorers
from evaluations.services.exporting.reviewed import SaidByPeople, people_of
from evaluations.services.importing.preferring import Preference


def rows(comparisons: "QuerySet[Comparison]", cast: Cast) -> Iterator[exported.ExportedRow]:
    """Every comparison in the order of its making, read by keyset: the same few queries a chunk, memory flat."""
    after = 0
    while chunk := read_chunk(comparisons, after):
        yield from rows_of(chunk, cast)
        after = chunk[-1].pk


def rows_of(chunk: Sequence[Material], cast: Cast) -> Iterator[exported.ExportedRow]:
    """Verdicts are read before the reviews and calls they came from: none is met without its own."""
    ids = [one.pk for one in chunk]
    said, scores, preferred = verdicts_of(ids, cast), scores_of(ids, cast), preferences_of(ids, cast)
    reviews, calls, scoring, discussion = reviews_of(ids), calls_of(ids), scoring_of(chunk, cast), discussion_of(ids)
    for one in chunk:
        by_rater, in_files = said.get(one.pk, {}), preferred.get(one.pk, {})
        given = SaidByPeople(by_rater, scores.get(one.pk, {}), in_files)
        people = people_of(one, given, reviews.saved, discussion.spans, cast)
        judges = with_scorers(judges_of(by_rater, calls.get(one.pk, {}), cast), scorers_of(one, scoring, cast))
        settled = discussion.adjudications.get(one.pk, [])
        yield {
            **material_of(one),
            "labels": labels_of(people, settled, judges, cast),
            "adjudications": {cast.aspects[by.aspect_id]: adjudication_of(by) for by in settled},
            "comments": [comment_of(comment, cast) for comment in discussion.comments.get(one.pk, ())],
            "gold": gold_of(by_rater, in_files, cast),
            "judges": sorted(judges.values(), key=lambda judge: judge["judge"]),
            "people": people,
            "skipped": [skip_of(review) for review in by_name(reviews.skipped.get(one.pk, ()))],
        }


def material_of(one: Material) -> exported.MaterialOf:
    """The names of comparison files: a query of one turn is its text, any other its messages."""
    (first, *others) = one.messages
    single = not others and first["role"] == "user"
    return {
        "query_id": one.key,
        "cluster": one.cluster,
        "category": one.category,
        "query": first["content"] if single else None,
        "messages": None if single else one.messages,
        "context": one.context,
        "reference": one.reference,
        "candidate_a": one.candidate_a,
        "response_a": words_of(one.response_a),
        "candidate_b": one.candidate_b,
        "response_b": words_of(one.response_b),
        "metadata": metadata_of(one),
    }


def metadata_of(one: Material) -> dict[str, Any]:
    """What came with query and comparison, and under the side's name what came with a response alone."""
    sides = {"response_a": one.metadata_a, "response_b": one.metadata_b}
    return one.query_metadata | one.metadata | {side: given for side, given in sides.items() if given}


def words_of(messages: list[Message]) -> str | list[Message]:
    if len(messages) == 1 and messages[0]["role"] == "assistant":
        return messages[0]["content"]
    return messages


def labels_of(
    people: Sequence[exported.Person],
    settled: Sequence[Adjudication],
    judges: Mapping[int, exported.Judge],
    cast: Cast,
) -> dict[str, exported.Label]:
    """As `labelling.labels` has them, from what was read already."""
    votes = votes_of(people)
    labels = {aspect: labelling.voted(given) for aspect, given in votes.items()}
    for one in settled:
        key = cast.aspects[one.aspect_id]
        labels[key] = labelling.adjudicated(Choice(one.choice), one.user.username, votes.get(key, {}))
    told = {aspect: label_of(label) for aspect, label in labels.items()}
    for aspect, said in spoken(judges, cast).items():
        if aspect not in told and (label := label_by(tuple(said), cast)):
            told[aspect] = label
    return told


def votes_of(people: Sequence[exported.Person]) -> Mapping[str, Counter[Choice]]:
    """As `tallying.votes_on` counts them: of a person's reviews, the oldest first, the newest with it."""
    newest: dict[tuple[str, str, int], Choice] = {}
    for place, person in enumerate(people):
        if person["calibration"] or person["state"] != ReviewState.FINAL:
            continue
        imported_as = place if person["rubric"] is None else -1
        for aspect, said in person["choices"].items():
            if said["final"]:
                newest[aspect, person["rater"], imported_as] = Choice(said["final"])
    votes: dict[str, Counter[Choice]] = defaultdict(Counter)
    for (aspect, _, _), choice in newest.items():
        votes[aspect][choice] += 1
    return votes


def spoken(judges: Mapping[int, exported.Judge], cast: Cast) -> Mapping[str, list[tuple[int, str]]]:
    """Aspect key → the ids and choices of the judges that may label."""
    said: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for pk in judges.keys() & cast.bench.raters.keys():
        for aspect, told in judges[pk]["choices"].items():
            if told["choice"]:
                said[aspect].append((pk, told["choice"]))
    return said


def label_by(said: tuple[tuple[int, str], ...], cast: Cast) -> exported.Label | None:
    """What the judges' choices make. Few patterns of them occur, each many times."""
    if said not in cast.patterns:
        label = cast.bench.label({pk: Choice(choice) for pk, choice in said})
        cast.patterns[said] = label_of(label) if label else None
    return cast.patterns[said]


def label_of(label: labelling.Label) -> exported.Label:
    return {
        "choice": label.choice,
        "source": label.source,
        "n": label.n,
        "votes": {str(choice): count for choice, count in label.votes.items()},
        "by": label.by or None,
    }


def adjudication_of(one: Adjudication) -> exported.Adjudication:
    return {"choice": one.choice, "reason": one.reason, "by": one.user.username, "at": moment(one.changed_at)}


def comment_of(comment: Comment, cast: Cast) -> exported.Comment:
    return {
        "author": comment.user.username,
        "aspect": cast.aspects.get(comment.aspect_id or 0),
        "text": comment.text,
        "at": moment(comment.created_at),
    }


def by_name(reviews: Sequence[Review]) -> list[Review]:
    """Here and not by the database, whose order of letters is its own."""
    return sorted(reviews, key=lambda review: (review.rater.name, review.pk))


def skip_of(review: Review) -> exported.Skip:
    return {
        "rater": review.rater.name,
        "rubric": rubric_name(review.rubric_version),
        "reason": review.skip_reason,
        "at": moment(review.finished_at) if review.finished_at else None,
    }


def moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")


def gold_of(
    said: Mapping[int, list[Said]], preferred: Mapping[int, list[Preference]], cast: Cast
) -> list[exported.Gold]:
    """Choices as they came, and as its scores make them."""
    spoken: dict[int, list[Said]] = {**{pk: [] for pk in preferred}, **said}
    gold: list[exported.Gold] = []
    for rater, given in cast.those(RaterKind.GOLD, spoken):
        choices: dict[str, str] = {cast.aspects[one.aspect_id]: one.choice for one in given}
        derived = {cast.aspects[one.aspect]: str(one.choice) for one in preferred.get(rater.pk, ())}
        gold.append({"rater": rater.name, "choices": choices | derived})
    return gold
