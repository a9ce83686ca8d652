"""From a filter to comparisons. Every door, report, run and export asks here, so that all mean the same ones."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.db import connection
from django.db.models import Case, Exists, F, IntegerField, Max, Min, OuterRef, Q, QuerySet, When
from django.db.models.expressions import Combinable

from evaluations.domain import (
    ANY_FAILURE,
    CHOICES,
    DIFFERS,
    FAILURE_STATES,
    PLACES_A_BLOCK,
    SAVED_REVIEW_STATES,
    SPLIT,
    Choice,
    ComparisonOrigin,
    DisagreementState,
    Filter,
    InputRefused,
    LabelSource,
    RaterKind,
    ReviewsSaved,
    ReviewState,
    block_of,
    shift_of,
)
from evaluations.domain.searching import Search, search_for
from evaluations.models.adjudication import Adjudication, Label
from evaluations.models.ballots import Ballot
from evaluations.models.evaluations import Evaluation
from evaluations.models.finding import Tag, Tagging
from evaluations.models.judges import Rater
from evaluations.models.material import Candidate, Comparison, Import, Query, Response
from evaluations.models.rubrics import Aspect, RubricVersion
from evaluations.models.runs import Call
from evaluations.models.searching import first_with, ids_with
from evaluations.models.verdicts import Review, Score

CODE_BITS: Final = 7
FEW: Final = 400
REVIEW_STATES: Final = {
    ReviewsSaved.BEGUN: (ReviewState.DRAFT,),
    ReviewsSaved.SAVED: SAVED_REVIEW_STATES,
    ReviewsSaved.FINAL: (ReviewState.FINAL,),
    ReviewsSaved.SKIPPED: (ReviewState.SKIPPED,),
}


def comparisons_in(evaluation: Evaluation, wanted: Filter) -> "QuerySet[Comparison]":
    """The comparisons of an evaluation that a filter means. Whether somebody may ask is for `access` to say."""
    return narrowed_to(Comparison.objects.filter(evaluation=evaluation), evaluation, wanted)


def narrowed_to(comparisons: "QuerySet[Comparison]", evaluation: Evaluation, wanted: Filter) -> "QuerySet[Comparison]":
    """Those of the comparisons that the filter means. A name that is not known here is refused in words."""
    for condition in conditions(evaluation, wanted):
        comparisons = comparisons.filter(condition(EVERYWHERE))
    return comparisons


@dataclass(frozen=True)
class Among:
    """Comparisons after one id, up to another, or these alone: what says something of them is looked up only there."""

    after: int | None = None
    last: int | None = None
    ids: tuple[int, ...] | None = None

    def where(self, column: str = "comparison") -> Q:
        if self.ids is not None:
            return Q(**{f"{column}__in": self.ids})
        found = Q()
        if self.after is not None:
            found &= Q(**{f"{column}__gt": self.after})
        return found if self.last is None else found & Q(**{f"{column}__lte": self.last})


EVERYWHERE: Final = Among()
Condition = Callable[[Among], Q | Combinable]


def conditions(evaluation: Evaluation, wanted: Filter) -> Iterator[Condition]:
    """Each for itself, to be asked of all comparisons or of some. What is named is looked up here, once."""
    yield from quick_conditions(evaluation, wanted)
    yield from slow_conditions(evaluation, wanted)


def quick_conditions(evaluation: Evaluation, wanted: Filter) -> Iterator[Condition]:
    """What an index of comparisons says, or of those alone that the condition means."""
    for name in filter(None, (wanted.candidate, wanted.against)):
        candidate = named(Candidate, evaluation, "candidate", name)
        yield constant(Q(candidate_a=candidate) | Q(candidate_b=candidate))
    said: dict[str, str | int] = {"category": wanted.category, "origin": wanted.origin}
    if wanted.source:
        said["source_import"] = import_of(evaluation, wanted.source)
    for column, value in said.items():
        if value:
            yield constant(Q(**{column: value}))
    for name in wanted.tags:
        yield partial(tagged, named(Tag, evaluation, "tag", name))
    if wanted.disagreement:
        yield partial(disagreed, DisagreementState(wanted.disagreement))
    if wanted.flagged:
        yield flagged(evaluation)


def few_that(evaluation: Evaluation, wanted: Filter) -> tuple[int, ...] | None:
    """All comparisons that one part of the filter means, where an index tells at once that they are few; else None.

    The other parts are then asked of these alone, however many comparisons there are.
    """
    for found in told_at_once(evaluation, wanted):
        if found is not None and len(found) <= FEW:
            return tuple(sorted(set(found)))
    return None


def told_at_once(evaluation: Evaluation, wanted: Filter) -> Iterator[Collection[int] | None]:
    """By each part that has an index of its own the first comparisons, or none where they are told to be many."""
    for name in wanted.tags:
        tag = named(Tag, evaluation, "tag", name)
        yield first_of(Tagging.objects.filter(tag=tag).values_list("comparison_id", flat=True))
    if wanted.disagreement == DisagreementState.SETTLED:
        settled = Adjudication.objects.filter(aspect__evaluation=evaluation)
        yield first_of(settled.values_list("comparison_id", flat=True))
    if wanted.source:
        brought = Comparison.all_rows.filter(source_import=import_of(evaluation, wanted.source))
        yield first_of(brought.values_list("pk", flat=True))
    if wanted.flagged:
        yield few_flagged(evaluation)
    if wanted.origin == ComparisonOrigin.BY_HAND:  # the others are seldom few
        typed = Comparison.all_rows.filter(evaluation=evaluation, origin=ComparisonOrigin.BY_HAND)
        yield first_of(typed.values_list("pk", flat=True))
    if wanted.reviews and wanted.reviews != ReviewsSaved.NONE:
        yield first_of(reviewed(evaluation, REVIEW_STATES[ReviewsSaved(wanted.reviews)]))
    if wanted.aspect and wanted.choice and not wanted.rater:
        says = labelled(aspect_of(evaluation, wanted.aspect), wanted.choice)
        yield first_of(says.values_list("comparison_id", flat=True))
    if wanted.category:
        queries = Query.all_rows.filter(evaluation=evaluation, category=wanted.category)
        few = first_of(queries.values_list("pk", flat=True))
        asked = Comparison.all_rows.filter(query__in=few).values_list("pk", flat=True)
        yield first_of(asked) if len(few) <= FEW else None
    if wanted.text:
        yield first_with(search_for(wanted.text), FEW + 1)


def reviewed(evaluation: Evaluation, states: Collection[ReviewState]) -> "QuerySet[Any, int]":
    """By rater and rubric version, both known here: `review_of_rater` then tells the states."""
    raters = list(Rater.objects.filter(evaluation=evaluation).values_list("pk", flat=True))
    versions = list(RubricVersion.objects.filter(rubric__evaluation=evaluation).values_list("pk", flat=True))
    reviews = Review.all_rows.filter(rater__in=raters, rubric_version__in=versions, state__in=states)
    return reviews.values_list("comparison_id", flat=True)


def first_of(ids: "QuerySet[Any, int]") -> list[int]:
    return list(ids.order_by()[: FEW + 1])


def slow_conditions(evaluation: Evaluation, wanted: Filter) -> Iterator[Condition]:
    """What is read off much more than it finds: best asked of few."""
    if wanted.text:
        yield partial(with_words, search_for(wanted.text))
    yield from of_choices(evaluation, wanted)
    if wanted.reviews:
        yield partial(of_reviews, ReviewsSaved(wanted.reviews))


def constant(condition: Q) -> Condition:
    return lambda among: condition


def with_words(search: Search, among: Among) -> Q:
    bounds = (min(among.ids) - 1, max(among.ids)) if among.ids else (among.after, among.last)
    return Q(pk__in=ids_with(search, *bounds, among.ids))


def tagged(tag: int, among: Among) -> Q:
    return Q(pk__in=Tagging.objects.filter(among.where(), tag=tag).values("comparison"))


def flagged(evaluation: Evaluation) -> Condition:
    """By way of the texts that are suspect, of which alone there is an index: seldom more than a few."""
    found = few_flagged(evaluation)
    if found is not None:
        return constant(Q(pk__in=found))
    queries, responses = (texts.values("pk") for texts in suspect(evaluation))
    return constant(Q(query__in=queries) | Q(response_a__in=responses) | Q(response_b__in=responses))


def suspect(evaluation: Evaluation) -> "tuple[QuerySet[Query], QuerySet[Response]]":
    queries = Query.all_rows.filter(evaluation=evaluation).exclude(flags="").order_by()
    responses = Response.all_rows.filter(query__evaluation=evaluation).exclude(flags="").order_by()
    # Among few of all evaluations it is told at once which are of this one: SQLite would go through its queries.
    anywhere = first_of(Response.all_rows.exclude(flags="").values_list("pk", flat=True))
    return queries, responses.filter(pk__in=anywhere) if len(anywhere) <= FEW else responses


def few_flagged(evaluation: Evaluation) -> set[int] | None:
    """The comparisons of suspect texts; None where those texts are many."""
    few = [first_of(texts.values_list("pk", flat=True)) for texts in suspect(evaluation)]
    if max(map(len, few)) > FEW:
        return None
    found: set[int] = set()
    for column, ids in (("query", few[0]), ("response_a", few[1]), ("response_b", few[1])):
        found.update(Comparison.all_rows.filter(**{f"{column}__in": ids}).values_list("pk", flat=True))
    return found


def named(model: type, evaluation: Evaluation, what: str, name: str) -> int:
    found: int | None = model.objects.filter(evaluation=evaluation, name=name).values_list("pk", flat=True).first()  # type: ignore[attr-defined]
    if found is None:
        raise InputRefused(f"There is no {what} “{name}” here.")
    return found


def import_of(evaluation: Evaluation, number: int) -> int:
    if not Import.objects.filter(evaluation=evaluation, pk=number).exists():
        raise InputRefused(f"There is no import {number} here.")
    return number


def of_reviews(wanted: ReviewsSaved, among: Among) -> Q | Combinable:
    if wanted == ReviewsSaved.NONE:
        if connection.vendor == "sqlite":  # one list of them, where a look-up for each takes ten times as long
            saved = Review.all_rows.filter(among.where(), state__in=SAVED_REVIEW_STATES)
            return ~Q(pk__in=saved.values("comparison"))
        return ~Exists(Review.all_rows.filter(comparison=OuterRef("pk"), state__in=SAVED_REVIEW_STATES))
    reviews = Review.objects.filter(among.where(), state__in=REVIEW_STATES[wanted])
    return Q(pk__in=reviews.values("comparison"))


# ---- what was chosen ------------------------------------------------------------------------


def of_choices(evaluation: Evaluation, wanted: Filter) -> Iterator[Condition]:
    aspect = aspect_of(evaluation, wanted.aspect) if wanted.aspect else None
    if wanted.rater:
        rater = rater_of(evaluation, wanted.rater)
        yield partial(spoke, rater) if aspect is None else partial(chose, rater, aspect, wanted.choice)
    elif aspect is not None:
        yield partial(with_label, aspect, wanted.choice)
    if wanted.failed:
        yield partial(failed, evaluation, wanted.failed)


def aspect_of(evaluation: Evaluation, key: str) -> Aspect:
    found = Aspect.objects.filter(evaluation=evaluation, key=key).first()
    if found is None:
        raise InputRefused(f"There is no aspect “{key}” here.")
    return found


def rater_of(evaluation: Evaluation, named: str) -> Rater:
    """By ``kind:name``."""
    kind, _, name = named.partition(":")
    found = Rater.objects.filter(evaluation=evaluation, kind=kind, name=name).first()
    if found is None:
        raise InputRefused(f"There is no {kind} “{name}” here.")
    return found


def with_label(aspect: Aspect, choice: str, among: Among) -> Q:
    return Q(pk__in=labelled(aspect, choice).filter(among.where()).values("comparison"))


def labelled(aspect: Aspect, choice: str) -> "QuerySet[Label]":
    labels = Label.objects.filter(aspect=aspect)
    return labels.filter(choice="" if choice == SPLIT else choice) if choice else labels


def spoke(rater: Rater, among: Among) -> Q:
    """That it chose on some aspect, or scored both responses."""
    chosen = Q(pk__in=Ballot.objects.filter(among.where(), rater=rater).values("comparison"))
    scores = Score.objects.filter(rater=rater)
    if not scores.exists():
        return chosen
    scored = scores.values("response")
    return chosen | (Q(response_a__in=scored) & Q(response_b__in=scored))


def chose(rater: Rater, aspect: Aspect, choice: str, among: Among) -> Q:
    """That all its answers say so; `DIFFERS`: that they do not all say the same; nothing: that it answered."""
    all_of_it = Ballot.objects.filter(rater=rater, block=block_of(aspect.place))
    all_of_it = all_of_it.alias(code=code_of(rater, aspect)).filter(code__gt=0)
    ballots = all_of_it.filter(among.where())
    if not choice:
        return Q(pk__in=ballots.values("comparison"))
    if choice == DIFFERS:
        told = ballots.order_by().values("comparison").alias(low=Min("code"), high=Max("code"))
        told = told.alias(odd=Max(oddness(aspect)))
        return Q(pk__in=told.filter(Q(low__lt=F("high")) | Q(odd__gt=0)).values("comparison"))
    code = CHOICES.index(Choice(choice)) + 1
    # First what is rare and read in one go, then for these alone whether anything else was said: by comparison and not
    # among those, else SQLite reads from the first of them each time.
    others = all_of_it.filter(comparison=OuterRef("pk")).exclude(code=code)
    return Q(pk__in=ballots.filter(code=code).values("comparison")) & ~Q(Exists(others))


def code_of(rater: Rater, aspect: Aspect) -> Combinable:
    """The three bits of the aspect: of people those of their final choices, where they have saved some."""
    first, final = bits(F("first"), aspect), bits(F("final"), aspect)
    if rater.kind == RaterKind.HUMAN:
        return Case(When(final=0, then=first), default=final, output_field=IntegerField())
    return first


def bits(column: F, aspect: Aspect) -> Combinable:
    return column.bitrightshift(shift_of(aspect.place)).bitand(CODE_BITS)


def oddness(aspect: Aspect) -> Combinable:
    """Whether a rater that was read from a file contradicted itself: the aspect's own bit."""
    return F("inconsistent").bitrightshift(aspect.place % PLACES_A_BLOCK).bitand(1)


def disagreed(state: DisagreementState, among: Among) -> Q:
    if state == DisagreementState.SETTLED:
        return Q(pk__in=Adjudication.objects.filter(among.where()).values("comparison"))
    open_still = Label.objects.filter(among.where(), unanimous=False).exclude(source=LabelSource.ADJUDICATED)
    return Q(pk__in=open_still.values("comparison"))


def failed(evaluation: Evaluation, state: str, among: Among) -> Q:
    """That a call on the comparison, or on one of its responses, ended in this state, or in any without an answer."""
    states = FAILURE_STATES if state == ANY_FAILURE else (state,)
    # By run and by import, each of which has an index; by judge every call would be looked at.
    asked = Call.all_rows.filter(run__evaluation=evaluation, state__in=states, is_test=False)
    imported = Call.objects.filter(source_import__evaluation=evaluation, state__in=states)
    found = Q(pk__in=asked.filter(among.where()).values("comparison"))
    found |= Q(pk__in=imported.filter(among.where()).values("comparison"))
    of_responses = asked.filter(response__isnull=False)
    if not of_responses.exists():
        return found
    return found | Q(response_a__in=of_responses.values("response")) | Q(response_b__in=of_responses.values("response"))
