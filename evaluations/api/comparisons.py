"""Comparisons: the list by the page's filters, one, what everyone said of it; tags and slices."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db.models import QuerySet
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query

from evaluations import access
from evaluations.access import Action
from evaluations.api.admission import person
from evaluations.api.forms import checked, refuse_unknown, sent
from evaluations.api.operations import Operations
from evaluations.api.paging import Paging, after_of, written
from evaluations.api.problems import Fault, Problem
from evaluations.api.schemas.comparisons import (
    AdjudicationTold,
    AskingTold,
    CellTold,
    ComparisonNew,
    ComparisonPage,
    ComparisonTold,
    ComparisonWhole,
    Given,
    Giving,
    LabelTold,
    OrderTold,
    RaterRow,
    ResponseTold,
    SliceChange,
    SliceList,
    SliceNew,
    SliceTold,
    Tagging,
    TaggingAll,
    TagList,
    TagStep,
    TagTold,
    TagWorkTold,
    Undoing,
    VerdictsTold,
)
from evaluations.api.telling import messages_told, person_told
from evaluations.domain import Choice, Filter, RaterKind, Scope, filter_from
from evaluations.forms.comparison_new import ComparisonForm
from evaluations.forms.comparisons import FilterForm
from evaluations.forms.people_chosen import PeopleForm
from evaluations.models import Adjudication, Comparison, Evaluation, Event, Slice, Tag, User
from evaluations.models import Tagging as TaggingRow
from evaluations.services.importing.adding import add_comparison
from evaluations.services.preparing import slicing, tagging
from evaluations.services.reporting.browsing import Progress, find, progress
from evaluations.services.reporting.narrowing import few_told_apart
from evaluations.services.reporting.noticing import note_seen
from evaluations.services.reporting.tabulating import Row, Table, table_of
from evaluations.services.reviewing.assigning import assign
from evaluations.services.reviewing.drawing import in_order_shown
from evaluations.tasks import nudge, tag_all

operations = Operations(tags=["comparisons"])
# Lists show neither the messages of a query nor those of its responses: they are left unread.
LISTED: Final = (
    *("evaluation", "query__key", "query__text", "query__category", "query__flags"),
    *("response_a__candidate__name", "response_a__flags", "response_b__candidate__name", "response_b__flags"),
)
WHOLE: Final = ("query", "response_a__candidate", "response_b__candidate", "evaluation__review_rubric__rubric")
PLACES: Final = ("cursor", "limit")
FILTERS: Final[Mapping[str, str]] = {
    "q": "words in the texts",
    "category": "the category of the query",
    "candidate": "one of the two",
    "against": "the other one",
    "tag": "may be given several times",
    "flagged": "`on`: a text speaks to the judge",
    "aspect": "what a choice is about",
    "choice": "what was chosen: A, B, tie, both_bad, differs, split",
    "rater": "`kind:name`; empty: the label",
    "reviews": "how far people are: none, begun, saved, final, skipped",
    "disagreement": "open or settled",
    "judge_failed": "how a judge's call ended, or `any`",
    "origin": "imported, paired or by_hand",
    "import": "the id of the import that brought it",
    "slice": "the name of a slice",
}
ASKED: Final = [
    {
        "name": name,
        "in": "query",
        "required": False,
        "description": words,
        "schema": {"type": "array", "items": {"type": "string"}} if name == "tag" else {"type": "string"},
    }
    for name, words in FILTERS.items()
]


@operations.get_one("/evaluations/{slug:slug}/comparisons", Scope.READ, ComparisonPage, extra={"parameters": ASKED})
def list_comparisons(request: HttpRequest, slug: str, paging: Query[Paging]) -> ComparisonPage:
    """By the filters of the page, in the order of their ids. A filter that you may not use is refused."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug)
    wanted = filters_in(request, user, evaluation)
    found = find(evaluation, wanted, after=after_of(paging), size=paging.limit)
    rows = list(with_sides(Comparison.all_rows.filter(pk__in=found.ids)))
    if access.may(user, Action.REVIEW, evaluation) and any(one.tells_what_others_chose for one in wanted):
        note_seen(user, evaluation, few_told_apart(evaluation, wanted) or rows)
    return ComparisonPage(
        items=listed(user, evaluation, rows),
        next=written(found.goes_on) if found.goes_on else None,
        is_whole=found.is_whole,
    )


def with_sides(found: "QuerySet[Comparison]") -> "QuerySet[Comparison]":
    """As a list shows them, in the order of their ids."""
    related = found.select_related("query", "response_a__candidate", "response_b__candidate")
    return related.only(*LISTED).order_by("pk")


def filters_in(request: HttpRequest, user: User, evaluation: Evaluation) -> list[Filter]:
    form = FilterForm(
        request.GET,
        evaluation=evaluation,
        sees_all=access.may(user, Action.SEE_ALL, evaluation),
        judges_shown=access.may_see_judges(user, evaluation),
    )
    refuse_unknown(request.GET.dict(), form, PLACES)
    checked(form, "query")
    sliced = form.sliced()
    return [one for one in (form.wanted(), sliced.wanted if sliced else Filter()) if one]


def listed(user: User, evaluation: Evaluation, rows: Sequence[Comparison]) -> list[ComparisonTold]:
    ids = [row.pk for row in rows]
    how_far = progress(ids)
    named = set(access.open_comparisons(user, evaluation).filter(pk__in=ids).values_list("pk", flat=True))
    sees_judges, sees_all = access.may_see_judges(user, evaluation), access.may(user, Action.SEE_ALL, evaluation)
    tags = tags_of(ids) if sees_all else {}
    return [
        comparison_told(row, how_far[row.pk], tags.get(row.pk, []), is_named=row.pk in named, sees_judges=sees_judges)
        for row in rows
    ]


def tags_of(ids: Sequence[int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    rows = TaggingRow.objects.filter(comparison__in=ids).order_by("tag__name")
    for comparison, name in rows.values_list("comparison_id", "tag__name"):
        found[comparison].append(name)
    return found


def comparison_told(
    row: Comparison, how_far: Progress, tags: list[str], *, is_named: bool, sees_judges: bool
) -> ComparisonTold:
    return ComparisonTold(
        id=row.pk,
        query_id=row.query.key,
        query=row.query.text,
        category=row.query.category,
        candidate_a=row.response_a.candidate.name if is_named else None,
        candidate_b=row.response_b.candidate.name if is_named else None,
        flags=list(row.flags),
        people=how_far.people,
        gold=how_far.gold,
        judges=how_far.judges if sees_judges else None,
        calls_waiting=how_far.waiting if sees_judges else None,
        calls_failed=how_far.failed if sees_judges else None,
        labelled=how_far.labelled if is_named else None,
        split=how_far.split if is_named else None,
        tags=tags,
    )


@operations.make("/evaluations/{slug:slug}/comparisons", Scope.WRITE, ComparisonWhole)
def add_one_comparison(request: HttpRequest, slug: str, body: ComparisonNew) -> ComparisonWhole:
    """One written by hand. Of the two candidates A is the one whose name sorts first."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    form = ComparisonForm(sent(body))
    checked(form)
    made = add_comparison(evaluation, form.written(), user=user)
    return whole(user, comparison_for(evaluation, made.pk))


@operations.get_one("/evaluations/{slug:slug}/comparisons/{int:pk}", Scope.READ, ComparisonWhole)
def get_comparison(request: HttpRequest, slug: str, pk: int) -> ComparisonWhole:
    """Its texts. What others chose stands under its verdicts."""
    user = person(request)
    return whole(user, comparison_for(access.evaluation_for(user, slug), pk))


def comparison_for(evaluation: Evaluation, pk: int) -> Comparison:
    row: Comparison = get_object_or_404(Comparison.objects.select_related(*WHOLE), evaluation=evaluation, pk=pk)
    return row


def whole(user: User, row: Comparison) -> ComparisonWhole:
    is_open = access.may_see_verdicts(user, row)
    stored = (row.response_a, row.response_b)
    responses = stored if is_open else in_order_shown(user, row, stored)
    return ComparisonWhole(
        id=row.pk,
        query_id=row.query.key,
        messages=messages_told(row.query.messages),
        context=row.query.context,
        reference=row.query.reference,
        category=row.query.category,
        flags=words(row.query.flags),
        responses=[
            ResponseTold(
                side=side,
                candidate=response.candidate.name if is_open else None,
                messages=messages_told(response.messages),
                flags=words(response.flags),
                metadata=response.metadata if is_open else None,
            )
            for side, response in zip("AB", responses, strict=True)
        ],
        is_open=is_open,
    )


def words(flags: str) -> list[str]:
    return flags.split(",") if flags else []


@operations.get_one("/evaluations/{slug:slug}/comparisons/{int:pk}/verdicts", Scope.READ, VerdictsTold)
def get_verdicts(request: HttpRequest, slug: str, pk: int) -> VerdictsTold:
    """What everyone said of it, the labels, and what was settled; nothing of it before your own first save."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug)
    row: Comparison = get_object_or_404(
        access.open_comparisons(user, evaluation).select_related(*WHOLE), evaluation=evaluation, pk=pk
    )
    sees_judges = access.may_see_judges(user, evaluation)
    if access.may(user, Action.REVIEW, evaluation):
        note_seen(user, evaluation, [row], judges=sees_judges)
    decided = Adjudication.objects.filter(comparison=row).select_related("aspect", "user").order_by("aspect__name")
    return verdicts_told(table_of(row, with_judges=sees_judges), list(decided))


def verdicts_told(table: Table, decided: Sequence[Adjudication]) -> VerdictsTold:
    labels = [
        LabelTold(
            aspect=aspect.key,
            choice=label.choice or None,
            source=label.source,
            votes={str(choice): number for choice, number in label.votes.items()},
            by=label.by,
        )
        for aspect, label in zip(table.aspects, table.labels, strict=True)
        if label
    ]
    return VerdictsTold(
        aspects=[aspect.key for aspect in table.aspects],
        raters=[rater_row(row, [aspect.key for aspect in table.aspects]) for row in table.rows],
        labels=labels,
        adjudications=[adjudication_told(one) for one in decided],
    )


def rater_row(row: Row, aspects: Sequence[str]) -> RaterRow:
    cells = [
        CellTold(
            aspect=aspect,
            choices=list(cell.choices),
            first=cell.first,
            inconsistent=cell.inconsistent,
            orders=[OrderTold(shown=shown, choice=choice) for shown, choice in cell.orders],
            note=cell.note,
            weighted=cell.weighted,
        )
        for aspect, cell in zip(aspects, row.cells, strict=True)
        if cell
    ]
    askings = [
        AskingTold(
            shown=one.shown,
            sample=one.sample,
            state=one.state,
            rationale=one.rationale,
            error=one.error,
            call=one.call_id,
        )
        for one in row.askings
    ]
    return RaterRow(
        name=row.name,
        kind=RaterKind(row.kind),
        is_baseline=bool(row.judge and row.judge.is_baseline),
        cells=cells,
        askings=askings,
        notes=list(row.notes),
    )


def adjudication_told(one: Adjudication) -> AdjudicationTold:
    return AdjudicationTold(
        id=one.pk,
        aspect=one.aspect.key,
        choice=Choice(one.choice),
        reason=one.reason,
        by=person_told(one.user),
        version=one.version,
        changed_at=one.changed_at,
    )


@operations.do("/evaluations/{slug:slug}/comparisons/give", Scope.WRITE, Given)
def give_comparisons(request: HttpRequest, slug: str, body: Giving) -> Given:
    """Give comparisons to people by name: they meet them next."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    people = PeopleForm({"people": body.people}, people=access.reviewers(evaluation)).chosen()
    refuse_strange(evaluation, body.comparisons)
    comparisons = list(Comparison.objects.filter(evaluation=evaluation, pk__in=body.comparisons))
    given = assign(evaluation, comparisons, people, user)
    return Given(comparisons=given.number, reviewed_already=given.reviewed, waiting_already=given.waiting)


def refuse_strange(evaluation: Evaluation, ids: Sequence[int]) -> None:
    if Comparison.objects.filter(evaluation=evaluation, pk__in=ids).count() < len(set(ids)):
        fault = Fault("body.comparisons", "One of these is no comparison here.")
        raise Problem("invalid", "One of these is no comparison here. Nothing was done.", faults=[fault])


# ---- tags ----------------------------------------------------------------------------------


@operations.get_one("/evaluations/{slug:slug}/tags", Scope.READ, TagList)
def list_tags(request: HttpRequest, slug: str) -> TagList:
    """All of them, at most 500, by name."""
    evaluation = access.evaluation_for(person(request), slug, Action.SEE_ALL)
    counted: Any = tagging.counted(evaluation)
    return TagList(items=[TagTold(id=one.pk, name=one.name, comparisons=one.number) for one in counted])


@operations.do("/evaluations/{slug:slug}/tags/put", Scope.WRITE, TagStep)
def put_tag(request: HttpRequest, slug: str, body: Tagging) -> TagStep:
    """Put a tag on comparisons; it is made where there is none of that name."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.TAG)
    refuse_strange(evaluation, body.comparisons)
    return step_told(tagging.tag(evaluation, body.comparisons, body.name, user=user))


@operations.do("/evaluations/{slug:slug}/tags/take", Scope.WRITE, TagStep)
def take_tag(request: HttpRequest, slug: str, body: Tagging) -> TagStep:
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.TAG)
    refuse_strange(evaluation, body.comparisons)
    return step_told(tagging.untag(evaluation, body.comparisons, body.name, user=user))


@operations.do("/evaluations/{slug:slug}/tags/undo", Scope.WRITE, TagStep)
def undo_tag(request: HttpRequest, slug: str, body: Undoing) -> TagStep:
    """Take back one step: exactly the comparisons that it changed."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.TAG)
    return step_told(tagging.undo(evaluation, body.step, user=user))


@operations.do("/evaluations/{slug:slug}/tags/put-all", Scope.WRITE, TagWorkTold)
def put_tag_on_all(request: HttpRequest, slug: str, body: TaggingAll) -> TagWorkTold:
    """Put a tag on all that a filter means by now, or take it from them, in the background."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.TAG)
    wanted = filter_in(body.filter)
    work = tagging.tag_all(evaluation, [wanted] if wanted else [], body.name, takes_away=body.takes_away, user=user)
    nudge(tag_all, work.pk)
    return TagWorkTold(id=work.pk, name=work.tag.name)


@operations.change("/evaluations/{slug:slug}/tags/{int:pk}", Scope.WRITE, TagTold)
def rename_tag(request: HttpRequest, slug: str, pk: int, body: SliceChange) -> TagTold:
    one = tag_for(request, slug, pk)
    tagging.rename_tag(one, body.name, user=person(request))
    return TagTold(id=one.pk, name=one.name, comparisons=one.taggings.count())


@operations.remove("/evaluations/{slug:slug}/tags/{int:pk}", Scope.WRITE)
def delete_tag(request: HttpRequest, slug: str, pk: int) -> None:
    """Only one that nothing has any more."""
    tagging.delete_tag(tag_for(request, slug, pk), user=person(request))


def tag_for(request: HttpRequest, slug: str, pk: int) -> Tag:
    evaluation = access.evaluation_for(person(request), slug, Action.TAG)
    return get_object_or_404(Tag.objects.select_related("evaluation"), evaluation=evaluation, pk=pk)


def step_told(event: Event) -> TagStep:
    return TagStep(step=event.pk, name=event.after["name"], changed=event.after["number"])


# ---- slices --------------------------------------------------------------------------------


@operations.get_one("/evaluations/{slug:slug}/slices", Scope.READ, SliceList)
def list_slices(request: HttpRequest, slug: str) -> SliceList:
    """Filters with a name, for reports and exports."""
    evaluation = access.evaluation_for(person(request), slug, Action.SEE_ALL)
    rows = Slice.objects.filter(evaluation=evaluation).order_by("name")
    return SliceList(items=[slice_told(one) for one in rows])


@operations.make("/evaluations/{slug:slug}/slices", Scope.WRITE, SliceTold)
def save_slice(request: HttpRequest, slug: str, body: SliceNew) -> SliceTold:
    user = person(request)
    evaluation = access.evaluation_for(user, slug, Action.TAG)
    return slice_told(slicing.save_slice(evaluation, body.name, filter_in(body.filter), user=user))


def filter_in(given: Mapping[str, Any]) -> Filter:
    """A filter as JSON has it; a value of another kind is a mistake of the program."""
    for name, value in given.items():
        is_tags = name == "tag" and isinstance(value, list) and all(isinstance(one, str) for one in value)
        if not (is_tags or isinstance(value, str | bool | int)):
            fault = Fault(f"body.filter.{name}", "A value is a text, true or a number; of tags a list of texts.")
            raise Problem("invalid", "The filter cannot be read. Nothing was done.", faults=[fault])
    return filter_from({name: value if name == "tag" or value is True else str(value) for name, value in given.items()})


@operations.change("/evaluations/{slug:slug}/slices/{int:pk}", Scope.WRITE, SliceTold)
def rename_slice(request: HttpRequest, slug: str, pk: int, body: SliceChange) -> SliceTold:
    user, one = person(request), slice_for(request, slug, pk)
    slicing.rename_slice(one, body.name, user=user)
    return slice_told(one)


@operations.remove("/evaluations/{slug:slug}/slices/{int:pk}", Scope.WRITE)
def delete_slice(request: HttpRequest, slug: str, pk: int) -> None:
    slicing.delete_slice(slice_for(request, slug, pk), user=person(request))


def slice_for(request: HttpRequest, slug: str, pk: int) -> Slice:
    evaluation = access.evaluation_for(person(request), slug, Action.TAG)
    return get_object_or_404(Slice.objects.select_related("evaluation"), evaluation=evaluation, pk=pk)


def slice_told(one: Slice) -> SliceTold:
    return SliceTold(id=one.pk, name=one.name, filter=one.filter, in_words=one.wanted.in_words())
