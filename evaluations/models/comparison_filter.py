"""The queries that a comparison filter makes."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from django.db import connection
from django.db.models import Case, Exists, F, IntegerField, Max, Min, OuterRef, Q, QuerySet, When
from django.db.models.expressions import Combinable

from evaluations.domain.choices import PACKED_CHOICES, Choice, LabelSource
from evaluations.domain.errors import InputRefused
from evaluations.domain.filters import ANY_FAILURE, DIFFERS, SPLIT, ComparisonFilter, DisagreementState, ReviewsSaved
from evaluations.domain.judges import FAILURE_STATES
from evaluations.domain.packed_votes import SLOTS_PER_BLOCK, block_of_slot, shift_of_slot
from evaluations.domain.reviews import SAVED_REVIEW_STATES, ReviewState
from evaluations.domain.roles import RaterKind
from evaluations.domain.search import SearchQuery, parse_search_text
from evaluations.domain.texts import ComparisonOrigin
from evaluations.domain.vote_rules import SHOWN_ON_PAGES
from evaluations.models.comparisons import Candidate, Comparison, Query, Response, Tag, Tagging
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Aspect, RubricVersion
from evaluations.models.runs import Call
from evaluations.models.search_index import search_first_ids, search_ids
from evaluations.models.verdicts import Adjudication, Label, PackedVotes, Review, Score
from evaluations.models.vote_holders import holding_votes

Row = TypeVar("Row")

CODE_BITS: Final = 7
FEW_COMPARISONS: Final = 400
STATES_OF_REVIEWS_SAVED: Final = {
    ReviewsSaved.BEGUN: (ReviewState.DRAFT,),
    ReviewsSaved.SAVED: SAVED_REVIEW_STATES,
    ReviewsSaved.FINAL: (ReviewState.FINAL,),
    ReviewsSaved.SKIPPED: (ReviewState.SKIPPED,),
}


def filter_evaluation(evaluation: Evaluation, comparison_filter: ComparisonFilter) -> "QuerySet[Comparison]":
    """The comparisons of an evaluation that match a filter. Permission is checked in `access`."""
    return apply_comparison_filter(Comparison.objects.filter(evaluation=evaluation), evaluation, comparison_filter)


def apply_comparison_filter(
    comparisons: "QuerySet[Comparison]", evaluation: Evaluation, comparison_filter: ComparisonFilter
) -> "QuerySet[Comparison]":
    """Apply a filter to comparisons. A name that does not exist in the evaluation is refused."""
    for condition in filter_conditions(evaluation, comparison_filter):
        comparisons = comparisons.filter(condition(ALL_COMPARISONS))
    return comparisons


@dataclass(frozen=True)
class ComparisonRange:
    """Comparisons after one id and up to another, or these ids alone."""

    after: int | None = None
    last: int | None = None
    ids: tuple[int, ...] | None = None

    def where(self, column: str = "comparison") -> Q:
        if self.ids is not None:
            return Q(**{f"{column}__in": self.ids})
        condition = Q()
        if self.after is not None:
            condition &= Q(**{f"{column}__gt": self.after})
        return condition if self.last is None else condition & Q(**{f"{column}__lte": self.last})


ALL_COMPARISONS: Final = ComparisonRange()
FilterCondition = Callable[[ComparisonRange], Q | Combinable]


def filter_conditions(evaluation: Evaluation, comparison_filter: ComparisonFilter) -> Iterator[FilterCondition]:
    """The conditions of a filter, for all comparisons or a range of them. Names are looked up here, once."""
    yield from indexed_conditions(evaluation, comparison_filter)
    yield from unindexed_conditions(evaluation, comparison_filter)


def indexed_conditions(evaluation: Evaluation, comparison_filter: ComparisonFilter) -> Iterator[FilterCondition]:
    """The conditions that an index of comparisons or of their relations answers."""
    for name in filter(None, (comparison_filter.candidate, comparison_filter.against)):
        candidate = find_id_by_name(Candidate, evaluation, "candidate", name)
        yield fixed_condition(Q(candidate_a=candidate) | Q(candidate_b=candidate))
    columns: dict[str, str | int] = {"category": comparison_filter.category, "origin": comparison_filter.origin}
    if comparison_filter.source:
        columns["source_import"] = check_import_id(evaluation, comparison_filter.source)
    for column, value in columns.items():
        if value:
            yield fixed_condition(Q(**{column: value}))
    for name in comparison_filter.tags:
        yield partial(tag_condition, find_id_by_name(Tag, evaluation, "tag", name))
    if comparison_filter.disagreement:
        yield partial(disagreement_condition, DisagreementState(comparison_filter.disagreement))
    if comparison_filter.flagged:
        yield flag_condition(evaluation)


def find_few_matches(evaluation: Evaluation, comparison_filter: ComparisonFilter) -> tuple[int, ...] | None:
    """All ids that one indexed part of the filter matches, if they are few; else None.

    The other parts then need to be checked on these only.
    """
    for ids in first_matches_by_part(evaluation, comparison_filter):
        if ids is not None and len(ids) <= FEW_COMPARISONS:
            return tuple(sorted(set(ids)))
    return None


def first_matches_by_part(
    evaluation: Evaluation, comparison_filter: ComparisonFilter
) -> Iterator[Collection[int] | None]:
    """The first matching ids of each indexed part of the filter; None if there may be many."""
    for name in comparison_filter.tags:
        tag = find_id_by_name(Tag, evaluation, "tag", name)
        yield first_few_ids(Tagging.objects.filter(tag=tag).values_list("comparison_id", flat=True))
    if comparison_filter.disagreement == DisagreementState.RESOLVED:
        resolutions = Adjudication.objects.filter(aspect__evaluation=evaluation)
        yield first_few_ids(resolutions.values_list("comparison_id", flat=True))
    if comparison_filter.source:
        imported = Comparison.all_rows.filter(source_import=check_import_id(evaluation, comparison_filter.source))
        yield first_few_ids(imported.values_list("pk", flat=True))
    if comparison_filter.flagged:
        yield find_few_flagged(evaluation)
    if comparison_filter.origin == ComparisonOrigin.BY_HAND:  # other origins are rarely few
        manual = Comparison.all_rows.filter(evaluation=evaluation, origin=ComparisonOrigin.BY_HAND)
        yield first_few_ids(manual.values_list("pk", flat=True))
    if comparison_filter.reviews and comparison_filter.reviews != ReviewsSaved.NONE:
        yield first_few_ids(
            reviewed_comparison_ids(evaluation, STATES_OF_REVIEWS_SAVED[ReviewsSaved(comparison_filter.reviews)])
        )
    if comparison_filter.aspect and comparison_filter.choice and not comparison_filter.rater:
        labels = labels_with_choice(find_aspect(evaluation, comparison_filter.aspect), comparison_filter.choice)
        yield first_few_ids(labels.values_list("comparison_id", flat=True))
    if comparison_filter.category:
        queries = Query.all_rows.filter(evaluation=evaluation, category=comparison_filter.category)
        query_ids = first_few_ids(queries.values_list("pk", flat=True))
        of_queries = Comparison.all_rows.filter(query__in=query_ids).values_list("pk", flat=True)
        yield first_few_ids(of_queries) if len(query_ids) <= FEW_COMPARISONS else None
    if comparison_filter.text:
        yield search_first_ids(parse_search_text(comparison_filter.text), FEW_COMPARISONS + 1)


def reviewed_comparison_ids(evaluation: Evaluation, states: Collection[ReviewState]) -> "QuerySet[Any, int]":
    """The ids by rater and rubric version, so that the index `review_of_rater` applies."""
    raters = list(Rater.objects.filter(evaluation=evaluation).values_list("pk", flat=True))
    versions = list(RubricVersion.objects.filter(rubric__evaluation=evaluation).values_list("pk", flat=True))
    reviews = Review.all_rows.filter(rater__in=raters, rubric_version__in=versions, state__in=states)
    return reviews.values_list("comparison_id", flat=True)


def first_few_ids(ids: "QuerySet[Any, int]") -> list[int]:
    return list(ids.order_by()[: FEW_COMPARISONS + 1])


def unindexed_conditions(evaluation: Evaluation, comparison_filter: ComparisonFilter) -> Iterator[FilterCondition]:
    """The conditions without an index, to be applied to few comparisons."""
    if comparison_filter.text:
        yield partial(words_condition, parse_search_text(comparison_filter.text))
    yield from choice_conditions(evaluation, comparison_filter)
    if comparison_filter.reviews:
        yield partial(review_condition, ReviewsSaved(comparison_filter.reviews))


def fixed_condition(condition: Q) -> FilterCondition:
    return lambda among: condition


def words_condition(search: SearchQuery, among: ComparisonRange) -> Q:
    bounds = (min(among.ids) - 1, max(among.ids)) if among.ids else (among.after, among.last)
    return Q(pk__in=search_ids(search, *bounds, among.ids))


def tag_condition(tag: int, among: ComparisonRange) -> Q:
    return Q(pk__in=Tagging.objects.filter(among.where(), tag=tag).values("comparison"))


def flag_condition(evaluation: Evaluation) -> FilterCondition:
    """The condition over suspect texts, which have an index and are usually few."""
    ids = find_few_flagged(evaluation)
    if ids is not None:
        return fixed_condition(Q(pk__in=ids))
    queries, responses = (texts.values("pk") for texts in flagged_texts(evaluation))
    return fixed_condition(Q(query__in=queries) | Q(response_a__in=responses) | Q(response_b__in=responses))


def flagged_texts(evaluation: Evaluation) -> "tuple[QuerySet[Query], QuerySet[Response]]":
    queries = Query.all_rows.filter(evaluation=evaluation).exclude(flags="").order_by()
    responses = Response.all_rows.filter(query__evaluation=evaluation).exclude(flags="").order_by()
    # If few are flagged in all evaluations, start from these: SQLite would scan the queries of this one.
    flagged_ids = first_few_ids(Response.all_rows.exclude(flags="").values_list("pk", flat=True))
    return queries, responses.filter(pk__in=flagged_ids) if len(flagged_ids) <= FEW_COMPARISONS else responses


def find_few_flagged(evaluation: Evaluation) -> set[int] | None:
    """The comparisons of suspect texts; None if there are many such texts."""
    few = [first_few_ids(texts.values_list("pk", flat=True)) for texts in flagged_texts(evaluation)]
    if max(map(len, few)) > FEW_COMPARISONS:
        return None
    comparisons: set[int] = set()
    for column, ids in (("query", few[0]), ("response_a", few[1]), ("response_b", few[1])):
        comparisons.update(Comparison.all_rows.filter(**{f"{column}__in": ids}).values_list("pk", flat=True))
    return comparisons


def find_or_refuse(rows: "QuerySet[Any, Row]", label: str) -> Row:
    row = rows.first()
    if row is None:
        raise InputRefused(f"There is no {label} here.")
    return row


def find_id_by_name(model: type[Candidate | Tag], evaluation: Evaluation, label: str, name: str) -> int:
    rows = model.objects.filter(evaluation=evaluation, name=name)
    return find_or_refuse(rows.values_list("pk", flat=True), f"{label} “{name}”")


def check_import_id(evaluation: Evaluation, number: int) -> int:
    rows = Import.objects.filter(evaluation=evaluation, pk=number)
    return find_or_refuse(rows.values_list("pk", flat=True), f"import {number}")


def review_condition(state: ReviewsSaved, among: ComparisonRange) -> Q | Combinable:
    if state == ReviewsSaved.NONE:
        if connection.vendor == "sqlite":  # a lookup for each takes ten times as long
            saved = Review.all_rows.filter(among.where(), state__in=SAVED_REVIEW_STATES)
            return ~Q(pk__in=saved.values("comparison"))
        return ~Exists(Review.all_rows.filter(comparison=OuterRef("pk"), state__in=SAVED_REVIEW_STATES))
    reviews = Review.objects.filter(among.where(), state__in=STATES_OF_REVIEWS_SAVED[state])
    return Q(pk__in=reviews.values("comparison"))


# ---- choices


def choice_conditions(evaluation: Evaluation, comparison_filter: ComparisonFilter) -> Iterator[FilterCondition]:
    aspect = find_aspect(evaluation, comparison_filter.aspect) if comparison_filter.aspect else None
    if comparison_filter.rater:
        rater = find_rater_by_key(evaluation, comparison_filter.rater)
        yield (
            partial(rater_condition, rater)
            if aspect is None
            else partial(rater_choice_condition, rater, aspect, comparison_filter.choice)
        )
    elif aspect is not None:
        yield partial(label_condition, aspect, comparison_filter.choice)
    if comparison_filter.failed:
        yield partial(failure_condition, evaluation, comparison_filter.failed)


def find_aspect(evaluation: Evaluation, key: str) -> Aspect:
    return find_or_refuse(Aspect.objects.filter(evaluation=evaluation, key=key), f"aspect “{key}”")


def find_rater_by_key(evaluation: Evaluation, rater_key: str) -> Rater:
    """The rater with this key, ``kind:name``."""
    kind, _, name = rater_key.partition(":")
    return find_or_refuse(Rater.objects.filter(evaluation=evaluation, kind=kind, name=name), f"{kind} “{name}”")


def label_condition(aspect: Aspect, choice: str, among: ComparisonRange) -> Q:
    return Q(pk__in=labels_with_choice(aspect, choice).filter(among.where()).values("comparison"))


def labels_with_choice(aspect: Aspect, choice: str) -> "QuerySet[Label]":
    labels = Label.objects.filter(aspect=aspect)
    return labels.filter(choice="" if choice == SPLIT else choice) if choice else labels


def rater_condition(rater: Rater, among: ComparisonRange) -> Q:
    """A condition: the rater chose on an aspect, or scored both responses."""
    chosen = Q(pk__in=PackedVotes.objects.filter(among.where(), rater=rater).values("comparison"))
    scores = Score.objects.filter(rater=rater)
    if not scores.exists():
        return chosen
    scored = scores.values("response")
    return chosen | (Q(response_a__in=scored) & Q(response_b__in=scored))


def rater_choice_condition(rater: Rater, aspect: Aspect, choice: str, among: ComparisonRange) -> Q:
    """A condition: all answers of the rater are this choice, differ (`DIFFERS`), or exist (empty).

    The answers of a reviewer are the vote that counts and imported votes.
    """
    answers = PackedVotes.objects.filter(rater=rater, aspect_block=block_of_slot(aspect.slot))
    if rater.kind == RaterKind.HUMAN:
        counted = holding_votes(Review.objects.filter(rater=rater), aspect, SHOWN_ON_PAGES)
        answers = answers.filter(Q(review__isnull=True) | Q(review__in=counted.values("pk")))
    answers = answers.alias(code=choice_code(rater, aspect)).filter(code__gt=0)
    votes = answers.filter(among.where())
    if not choice:
        return Q(pk__in=votes.values("comparison"))
    if choice == DIFFERS:
        ranges = votes.order_by().values("comparison").alias(low=Min("code"), high=Max("code"))
        ranges = ranges.alias(odd=Max(inconsistent_bit(aspect)))
        return Q(pk__in=ranges.filter(Q(low__lt=F("high")) | Q(odd__gt=0)).values("comparison"))
    code = PACKED_CHOICES.index(Choice(choice)) + 1
    # Votes for the choice are few and read at once; only these are checked for other choices, by comparison: within
    # the range SQLite would read from its start each time.
    others = answers.filter(comparison=OuterRef("pk")).exclude(code=code)
    return Q(pk__in=votes.filter(code=code).values("comparison")) & ~Q(Exists(others))


def choice_code(rater: Rater, aspect: Aspect) -> Combinable:
    """The three bits of the aspect; for reviewers those of their final choices, if saved."""
    first, final = aspect_bits(F("first_choices"), aspect), aspect_bits(F("final_choices"), aspect)
    if rater.kind == RaterKind.HUMAN:
        return Case(When(final_choices=0, then=first), default=final, output_field=IntegerField())
    return first


def aspect_bits(column: F, aspect: Aspect) -> Combinable:
    return column.bitrightshift(shift_of_slot(aspect.slot)).bitand(CODE_BITS)


def inconsistent_bit(aspect: Aspect) -> Combinable:
    """The bit that says whether an imported rater was inconsistent on the aspect."""
    return F("inconsistent_aspects").bitrightshift(aspect.slot % SLOTS_PER_BLOCK).bitand(1)


def disagreement_condition(state: DisagreementState, among: ComparisonRange) -> Q:
    if state == DisagreementState.RESOLVED:
        return Q(pk__in=Adjudication.objects.filter(among.where()).values("comparison"))
    open_still = Label.objects.filter(among.where(), unanimous=False).exclude(source=LabelSource.ADJUDICATED)
    return Q(pk__in=open_still.values("comparison"))


def failure_condition(evaluation: Evaluation, state: str, among: ComparisonRange) -> Q:
    """That a call on the comparison, or on one of its responses, ended in this state, or in any without an answer."""
    states = FAILURE_STATES if state == ANY_FAILURE else (state,)
    # By run and by import, each of which has an index; by judge every call would be looked at.
    calls = Call.all_rows.filter(run__evaluation=evaluation, state__in=states, is_test=False)
    imported = Call.objects.filter(source_import__evaluation=evaluation, state__in=states)
    failed = Q(pk__in=calls.filter(among.where()).values("comparison"))
    failed |= Q(pk__in=imported.filter(among.where()).values("comparison"))
    of_responses = calls.filter(response__isnull=False)
    if not of_responses.exists():
        return failed
    return (
        failed | Q(response_a__in=of_responses.values("response")) | Q(response_b__in=of_responses.values("response"))
    )
