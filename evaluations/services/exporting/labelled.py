"""Comparisons and what the evaluation finally says of them, and nothing else: read several times as fast."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson
from django.db.models import QuerySet

from evaluations.domain import Choice, LabelSource, Message
from evaluations.formats import exported
from evaluations.models import Call, Comparison, Label
from evaluations.services import labelling
from evaluations.services.exporting.casting import Cast
from evaluations.services.exporting.collecting import Material, ballots_among, chunks, within
from evaluations.services.exporting.unfolding import CODES, MARKS, Answers, Group, Packed, choices_in
from evaluations.services.judging.consolidating import judges_choices

PATTERNS = 100_000
COUNTED_SOURCES = (LabelSource.SINGLE, LabelSource.MAJORITY)  # with all votes for the choice where they are unanimous

Labels = dict[str, exported.Label]


def rows(comparisons: "QuerySet[Comparison]", cast: Cast) -> Iterator[exported.LabelledRow]:
    for chunk in chunks(comparisons):
        ids = [one.pk for one in chunk]
        of_people, of_judges = labels_by_people(ids, cast), labels_by_judges(ids, cast)
        for one in chunk:
            labels = {**of_judges.get(one.pk, {}), **of_people.get(one.pk, {})}
            yield {**material_of(one, cast), "labels": labels}


# ---- what people say ------------------------------------------------------------------------


def labels_by_people(ids: Sequence[int], cast: Cast) -> Mapping[int, Labels]:
    """From the labels that are kept; where those do not tell single votes, or lag behind, from the votes."""
    if cast.present.untallied:
        return recounted(ids, cast)
    told: dict[int, Labels] = defaultdict(dict)
    unclear: set[int] = set()
    kept = Label.objects.filter(within(ids)).values_list(
        "comparison_id", "aspect_id", "choice", "source", "votes", "unanimous"
    )
    for pk, aspect, choice, source, votes, unanimous in kept:
        if not unanimous or source not in COUNTED_SOURCES:
            unclear.add(pk)
        elif aspect in cast.aspects:
            told[pk][cast.aspects[aspect]] = label_unanimous(choice, source, votes)
    return {**told, **recounted(sorted(unclear.intersection(ids)), cast)}


@lru_cache(maxsize=PATTERNS)
def label_unanimous(choice: str, source: str, votes: int) -> exported.Label:
    """The same votes give the same object: change none."""
    return {"choice": choice, "source": source, "n": votes, "votes": {choice: votes}, "by": None}


def recounted(ids: Sequence[int], cast: Cast) -> Mapping[int, Labels]:
    if not ids:
        return {}
    counted = labelling.labels_of_people(cast.evaluation, ids)
    return {pk: {key: named(label_of(one), cast) for key, one in given.items()} for pk, given in counted.items()}


def named(label: exported.Label, cast: Cast) -> exported.Label:
    if label["by"] is not None:
        label["by"] = cast.username(label["by"])
    return label


@lru_cache(maxsize=PATTERNS)
def label_voted(votes: frozenset[tuple[Choice, int]]) -> exported.Label:
    """What votes make. The same votes give the same object: change none."""
    return label_of(labelling.voted(dict(sorted(votes))))


def label_of(label: labelling.Label) -> exported.Label:
    return {
        "choice": label.choice.value if label.choice else None,
        "source": label.source.value,
        "n": label.n,
        "votes": {choice.value: count for choice, count in label.votes.items()},
        "by": label.by or None,
    }


# ---- what judges say where no person did ----------------------------------------------------


def labels_by_judges(ids: Sequence[int], cast: Cast) -> Mapping[int, Labels]:
    """What the judges that may label make of each aspect."""
    bench = cast.bench.raters.keys() & cast.judges.keys()
    if not bench:
        return {}
    if any(rater.pk in bench for rater in cast.scorers):
        return scored(ids, cast)
    asked = orders_asked(ids, [cast.judges[pk].pk for pk in bench])
    given = sorted_by_comparison(ballots_among(ids, bench))
    return {pk: labels_balloted(ballots, asked.get(pk, ()), cast) for pk, ballots in given.items()}


def orders_asked(ids: Sequence[int], judges: Sequence[int]) -> Mapping[int, Sequence[tuple[int, str]]]:
    """Comparison id → judge id and order of each call to these judges."""
    asked: dict[int, list[tuple[int, str]]] = defaultdict(list)
    calls = Call.objects.filter(within(ids), judge__in=judges)
    for pk, judge, shown in calls.order_by().values_list("comparison_id", "judge_id", "shown"):
        asked[pk or 0].append((judge, shown))
    return asked


def sorted_by_comparison(ballots: Iterable[Packed]) -> Mapping[int, list[Packed]]:
    given: dict[int, list[Packed]] = defaultdict(list)
    for one in ballots:
        given[one[0]].append(one)
    return given


def labels_balloted(ballots: Sequence[Packed], asked: Sequence[tuple[int, str]], cast: Cast) -> Labels:
    """What ballots on one comparison make. The same ballots give the same objects: change none."""
    told: Labels = {}
    orders = tuple(asked)
    for place, group in enumerate(cast.groups):
        shift, mark = group.shift, group.mark
        said = [
            (rater, shown, first >> shift & CODES, marks >> mark & MARKS)
            for _, rater, shown, block, first, marks, _ in ballots
            if block == group.block
        ]
        pattern = (place, orders, *said)
        known = cast.patterns.get(pattern)
        if known is None:
            known = labels_made(choices_said(said, orders, group, cast), cast)
            if len(cast.patterns) < PATTERNS:
                cast.patterns[pattern] = known
        told.update(known)
    return told


def choices_said(
    said: Iterable[tuple[int, int, int, int]], asked: Iterable[tuple[int, str]], group: Group, cast: Cast
) -> dict[int, dict[str, exported.JudgesChoice]]:
    """By rater id what ballots say on the aspects of a group."""
    orders: dict[int, set[str]] = defaultdict(set)
    for judge, shown in asked:
        orders[cast.rater_of[judge]].add(shown)
    answered: dict[int, list[tuple[int, int, int, int]]] = defaultdict(list)
    for rater, *one in said:
        answered[rater].append((0, one[0], one[1], one[2]))  # a label is the same whichever samples they are
    return {pk: choices_in(tuple(given), frozenset(orders[pk]), group) for pk, given in answered.items()}


def scored(ids: Sequence[int], cast: Cast) -> Mapping[int, Labels]:
    """The same where one of them scores: as `labelling` reads them."""
    said: dict[int, dict[str, dict[int, Choice]]] = defaultdict(lambda: defaultdict(dict))
    for rater, choices in judges_choices(list(cast.bench.raters.values()), ids).items():
        for pk, given in choices.items():
            for aspect, folded in given.items():
                said[pk][aspect][rater] = folded.choice
    labels: dict[int, Labels] = defaultdict(dict)
    for pk, by_aspect in said.items():
        for aspect, of_raters in by_aspect.items():
            if label := cast.bench.label(of_raters):
                labels[pk][aspect] = label_of(label)
    return labels


def labels_answered(answers: Mapping[int, Answers], cast: Cast) -> Labels:
    """What the answers of judges on one comparison make. The same answers give the same objects: change none."""
    may = [(pk, given) for pk, given in answers.items() if pk in cast.bench.raters]
    told: Labels = {}
    for place in range(len(cast.groups)):
        pattern = (place, *[(pk, asked, sheet[place]) for pk, (asked, sheet) in may])
        known = cast.patterns.get(pattern)
        if known is None:
            group = cast.groups[place]
            known = labels_made({pk: choices_in(sheet[place], asked, group) for pk, (asked, sheet) in may}, cast)
            if len(cast.patterns) < PATTERNS:
                cast.patterns[pattern] = known
        told.update(known)
    return told


def labels_made(said: Mapping[int, Mapping[str, exported.JudgesChoice]], cast: Cast) -> Labels:
    """By aspect, of those that may label."""
    told: Labels = {}
    may = {pk: choices for pk, choices in said.items() if pk in cast.bench.raters}
    for aspect in {aspect for choices in may.values() for aspect in choices}:
        given = {pk: choices[aspect]["choice"] for pk, choices in may.items() if aspect in choices}
        label = cast.bench.label({pk: Choice(choice) for pk, choice in given.items() if choice})
        if label is not None:
            told[aspect] = label_of(label)
    return told


# ---- material -------------------------------------------------------------------------------


def material_of(one: Material, cast: Cast) -> exported.MaterialOf:
    """The names of comparison files: a query of one turn is its text, any other its messages."""
    messages = messages_in(one.messages)
    single = len(messages) == 1 and messages[0]["role"] == "user"
    return {
        "query_id": one.key,
        "cluster": one.cluster,
        "category": one.category,
        "query": messages[0]["content"] if single else None,
        "messages": None if single else messages,
        "context": one.context,
        "reference": one.reference,
        "candidate_a": cast.candidates[one.candidate_a],
        "response_a": words_of(messages_in(one.response_a)),
        "candidate_b": cast.candidates[one.candidate_b],
        "response_b": words_of(messages_in(one.response_b)),
        "metadata": metadata_of(one),
    }


def messages_in(text: str) -> list[Message]:
    """Roles and contents are texts: nothing in them that one reader of JSON takes for another thing than the other."""
    try:
        return orjson.loads(text)  # type: ignore[no-any-return]
    except orjson.JSONDecodeError:
        return json.loads(text)  # type: ignore[no-any-return]


def metadata_of(one: Material) -> dict[str, Any]:
    """What came with query and comparison, and under the side's name what came with a response alone."""
    if one.query_metadata == one.metadata == one.metadata_a == one.metadata_b == "{}":
        return {}
    sides = {"response_a": json.loads(one.metadata_a), "response_b": json.loads(one.metadata_b)}
    return {
        **json.loads(one.query_metadata),
        **json.loads(one.metadata),
        **{side: given for side, given in sides.items() if given},
    }


def words_of(messages: list[Message]) -> str | list[Message]:
    if len(messages) == 1 and messages[0]["role"] == "assistant":
        return messages[0]["content"]
    return messages


def moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")
