"""Exported rows that hold comparisons with their labels alone."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache

import orjson
from django.db.models import QuerySet

from evaluations.domain.choices import Choice, LabelSource
from evaluations.domain.texts import Message
from evaluations.exports.chunk_reader import ComparisonRow, filter_within, iterate_chunks, list_packed_votes
from evaluations.exports.participants import Participants
from evaluations.formats.exported_rows import ExportedJudgeChoice, ExportedLabel, ExportedMaterial, LabelledRow
from evaluations.models.comparisons import Comparison
from evaluations.models.runs import Call
from evaluations.models.verdicts import Label
from evaluations.verdicts.judge_choices import (
    GROUP_CODE_MASK,
    GROUP_MARK_MASK,
    AspectGroup,
    JudgeAnswers,
    PackedVote,
    fold_group_choices,
)
from evaluations.verdicts.labels import DecidedLabel, decide_by_votes, decide_human_labels, read_label_judge_choices

MAX_CACHED_PATTERNS = 100_000
COUNTED_SOURCES = (LabelSource.SINGLE, LabelSource.MAJORITY)  # with all votes for the choice where they are unanimous

LabelsByAspect = dict[str, ExportedLabel]


def iterate_labelled_rows(comparisons: "QuerySet[Comparison]", cast: Participants) -> Iterator[LabelledRow]:
    for chunk in iterate_chunks(comparisons):
        ids = [one.pk for one in chunk]
        of_people, of_judges = read_people_labels(ids, cast), read_judge_labels(ids, cast)
        for one in chunk:
            labels = {**of_judges.get(one.pk, {}), **of_people.get(one.pk, {})}
            yield {**build_exported_material(one, cast), "labels": labels}


# ---- what people say ------------------------------------------------------------------------


def read_people_labels(ids: Sequence[int], cast: Participants) -> Mapping[int, LabelsByAspect]:
    """Labels by people: stored labels if they are unambiguous and current, else counted from the votes."""
    if cast.present.untallied:
        return recount_labels(ids, cast)
    told: dict[int, LabelsByAspect] = defaultdict(dict)
    unclear: set[int] = set()
    kept = Label.objects.filter(filter_within(ids)).values_list(
        "comparison_id", "aspect_id", "choice", "source", "votes", "unanimous"
    )
    for pk, aspect, choice, source, votes, unanimous in kept:
        if not unanimous or source not in COUNTED_SOURCES:
            unclear.add(pk)
        elif aspect in cast.aspects:
            told[pk][cast.aspects[aspect]] = build_unanimous_label(choice, source, votes)
    return {**told, **recount_labels(sorted(unclear.intersection(ids)), cast)}


@lru_cache(maxsize=MAX_CACHED_PATTERNS)
def build_unanimous_label(choice: str, source: str, votes: int) -> ExportedLabel:
    """A label with unanimous votes, cached: do not modify it."""
    return {"choice": choice, "source": source, "n": votes, "votes": {choice: votes}, "by": None}


def recount_labels(ids: Sequence[int], cast: Participants) -> Mapping[int, LabelsByAspect]:
    if not ids:
        return {}
    counted = decide_human_labels(cast.evaluation, ids)
    return {
        pk: {key: rename_adjudicator(serialize_label(one), cast) for key, one in given.items()}
        for pk, given in counted.items()
    }


def rename_adjudicator(label: ExportedLabel, cast: Participants) -> ExportedLabel:
    if label["by"] is not None:
        label["by"] = cast.username(label["by"])
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


def read_judge_labels(ids: Sequence[int], cast: Participants) -> Mapping[int, LabelsByAspect]:
    """The labels by the judges that may label, by aspect."""
    bench = cast.bench.raters.keys() & cast.judges.keys()
    if not bench:
        return {}
    if any(rater.pk in bench for rater in cast.scorers):
        return label_scored_comparisons(ids, cast)
    asked = read_orders_asked(ids, [cast.judges[pk].pk for pk in bench])
    given = group_by_comparison(list_packed_votes(ids, bench))
    return {pk: label_packed_votes(votes, asked.get(pk, ()), cast) for pk, votes in given.items()}


def read_orders_asked(ids: Sequence[int], judges: Sequence[int]) -> Mapping[int, Sequence[tuple[int, str]]]:
    """Comparison id → judge id with shown order of each call to these judges."""
    asked: dict[int, list[tuple[int, str]]] = defaultdict(list)
    calls = Call.objects.filter(filter_within(ids), judge__in=judges)
    for pk, judge, shown in calls.order_by().values_list("comparison_id", "judge_id", "shown"):
        asked[pk or 0].append((judge, shown))
    return asked


def group_by_comparison(votes: Iterable[PackedVote]) -> Mapping[int, list[PackedVote]]:
    given: dict[int, list[PackedVote]] = defaultdict(list)
    for one in votes:
        given[one[0]].append(one)
    return given


def label_packed_votes(
    votes: Sequence[PackedVote], asked: Sequence[tuple[int, str]], cast: Participants
) -> LabelsByAspect:
    """The labels that packed votes on one comparison make, cached: do not modify them."""
    told: LabelsByAspect = {}
    orders = tuple(asked)
    for place, group in enumerate(cast.groups):
        shift, mark = group.shift, group.mark
        said = [
            (rater, shown, first >> shift & GROUP_CODE_MASK, marks >> mark & GROUP_MARK_MASK)
            for _, rater, shown, block, first, marks, _ in votes
            if block == group.block
        ]
        pattern = (place, orders, *said)
        known = cast.patterns.get(pattern)
        if known is None:
            known = label_choices(unpack_judge_choices(said, orders, group, cast), cast)
            if len(cast.patterns) < MAX_CACHED_PATTERNS:
                cast.patterns[pattern] = known
        told.update(known)
    return told


def unpack_judge_choices(
    said: Iterable[tuple[int, int, int, int]], asked: Iterable[tuple[int, str]], group: AspectGroup, cast: Participants
) -> dict[int, dict[str, ExportedJudgeChoice]]:
    """By rater id the choices on the aspects of one group."""
    orders: dict[int, set[str]] = defaultdict(set)
    for judge, shown in asked:
        orders[cast.rater_of[judge]].add(shown)
    answered: dict[int, list[tuple[int, int, int, int]]] = defaultdict(list)
    for rater, *one in said:
        answered[rater].append((0, one[0], one[1], one[2]))  # a label is the same whichever samples they are
    return {pk: fold_group_choices(tuple(given), frozenset(orders[pk]), group) for pk, given in answered.items()}


def label_scored_comparisons(ids: Sequence[int], cast: Participants) -> Mapping[int, LabelsByAspect]:
    """Labels by judges if at least one of them rates single responses."""
    labels: dict[int, LabelsByAspect] = defaultdict(dict)
    for (pk, aspect), of_raters in read_label_judge_choices(cast.bench, ids).items():
        if label := cast.bench.label(of_raters):
            labels[pk][aspect] = serialize_label(label)
    return labels


def label_answers(answers: Mapping[int, JudgeAnswers], cast: Participants) -> LabelsByAspect:
    """The labels that judges' answers on one comparison make, cached: do not modify them."""
    may = [(pk, given) for pk, given in answers.items() if pk in cast.bench.raters]
    told: LabelsByAspect = {}
    for place in range(len(cast.groups)):
        pattern = (place, *[(pk, asked, sheet[place]) for pk, (asked, sheet) in may])
        known = cast.patterns.get(pattern)
        if known is None:
            group = cast.groups[place]
            known = label_choices(
                {pk: fold_group_choices(sheet[place], asked, group) for pk, (asked, sheet) in may}, cast
            )
            if len(cast.patterns) < MAX_CACHED_PATTERNS:
                cast.patterns[pattern] = known
        told.update(known)
    return told


def label_choices(said: Mapping[int, Mapping[str, ExportedJudgeChoice]], cast: Participants) -> LabelsByAspect:
    """By aspect the label by the judges that may label."""
    told: LabelsByAspect = {}
    may = {pk: choices for pk, choices in said.items() if pk in cast.bench.raters}
    for aspect in {aspect for choices in may.values() for aspect in choices}:
        given = {pk: choices[aspect]["choice"] for pk, choices in may.items() if aspect in choices}
        label = cast.bench.label({pk: Choice(choice) for pk, choice in given.items() if choice})
        if label is not None:
            told[aspect] = serialize_label(label)
    return told


# ---- material -------------------------------------------------------------------------------


def build_exported_material(one: ComparisonRow, cast: Participants) -> ExportedMaterial:
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
        "candidate_a": cast.candidates[one.candidate_a],
        "response_a": simplify_response(parse_messages(one.response_a)),
        "candidate_b": cast.candidates[one.candidate_b],
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
        **{side: given for side, given in sides.items() if given},
    }


def simplify_response(messages: list[Message]) -> str | list[Message]:
    if len(messages) == 1 and messages[0]["role"] == "assistant":
        return messages[0]["content"]
    return messages


def format_moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")
