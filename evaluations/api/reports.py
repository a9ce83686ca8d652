"""The report: the same numbers as `manage.py report --json`, for what this person may see; and its plots as files."""

from bisect import bisect_right
from dataclasses import replace
from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404
from django.utils.http import content_disposition_header
from ninja import Query

from evaluations import access
from evaluations.access import Action
from evaluations.api.admission import person
from evaluations.api.comparisons import listed, with_sides
from evaluations.api.forms import checked, refuse_unknown
from evaluations.api.operations import Operations
from evaluations.api.paging import Paging, after_of, written
from evaluations.api.problems import Fault, Problem
from evaluations.api.schemas.comparisons import ComparisonPage
from evaluations.domain import Choice, Part, PlotFormat, RaterKind, Rules, Scope
from evaluations.forms.report import ReportForm
from evaluations.models import Evaluation, Rater, User
from evaluations.services.reporting.narrowing import few_of
from evaluations.services.reporting.noticing import note_seen
from evaluations.services.reporting.plotting import aspects_with, file_of, part_of_plot, plot_on_paper
from evaluations.services.reporting.reporting import (
    ALL_PARTS,
    BY_ASPECT,
    Report,
    comparisons_in_cell,
    make_report,
    report_for,
)

operations = Operations(tags=["report"])
OF_JUDGES: Final = (Part.BIAS, Part.JUDGES)
FILTERS: Final = {
    "judge": "only these judges; may be given several times",
    "slice": "the name of a slice",
    "category": "of the query",
    "candidate_1": "only comparisons of this candidate",
    "candidate_2": "against this one",
    "reviewer": "only these people; may be given several times",
    "since": "votes from this day on, as 2026-01-31",
    "until": "votes up to this day",
    "seen": "what people had seen of the judge: nothing, blind or judge",
    "split_rule": "split majorities: tie, drop or first",
    "failed": "failed verdicts: exclude or tie",
    "coding": "sides: candidate or shown",
    "part": "of the evaluation's own split: train, dev or test",
    "pairs": "all: every pair of reviewers, above 30 reviewers too",
    "aspect": "of parts with a page for each aspect, the one",
}
SEVERAL: Final = ("judge", "reviewer")
MANY: Final = {"type": "array", "items": {"type": "string"}}


def asked(*more: dict[str, Any]) -> dict[str, Any]:
    told = [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": words,
            "schema": MANY if name in SEVERAL else {"type": "string"},
        }
        for name, words in FILTERS.items()
    ]
    return {"parameters": [*told, *more]}


ONLY: Final = {
    "name": "only",
    "in": "query",
    "required": False,
    "description": "one part of the report alone; empty: all that you may see",
    "schema": {"type": "string", "enum": [part.value for part in Part]},
}
# Open to those who see everything: both can name a candidate or a person.
FREE: Final = {
    "raters": "only raters of such a name; * stands for any letters",
    "where": "KEY=VALUE; may be given again",
}
RATERS: Final = {"name": "raters", "in": "query", "description": FREE["raters"], "schema": {"type": "string"}}
WHERE: Final = {"name": "where", "in": "query", "description": FREE["where"], "schema": MANY}
AS: Final = {
    "name": "as",
    "in": "query",
    "required": False,
    "schema": {"type": "string", "enum": [one.value for one in PlotFormat], "default": PlotFormat.CSV.value},
}
OF_CELL: Final = {"judge_choice": "what the judge said", "human_choice": "what most people said"}
A_CHOICE: Final = {"type": "string", "enum": [one.value for one in Choice]}
CHOICES: Final = [
    {"name": name, "in": "query", "required": True, "description": words, "schema": A_CHOICE}
    for name, words in OF_CELL.items()
]
FILE: Final = {
    "responses": {
        200: {"description": "the plot", "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
    }
}


@operations.get_one("/evaluations/{slug:slug}/report", Scope.READ, dict[str, Any], extra=asked(ONLY, RATERS, WHERE))
def get_report(request: HttpRequest, slug: str) -> dict[str, Any]:
    """Every number with its interval; what is undefined is null with a `why`. See the page on statistics."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug)
    sees_all = access.may(user, Action.SEE_ALL, evaluation)
    form = form_of(request, user, evaluation, ("only", "raters", "where") if sees_all else ("only",))
    rules = freely_narrowed(form.rules(), request.GET)
    parts = parts_in(request, access.may_see_judges(user, evaluation))
    told: dict[str, Any] = report_to(user, evaluation, rules, parts, form.cleaned_data["aspect"]).as_json()
    return told


@operations.get_one("/evaluations/{slug:slug}/report/plots/{slug:name}", Scope.READ, None, extra={**asked(AS), **FILE})
def get_plot(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """A plot of the report as a file, by the same filters."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug)
    part = part_named(part_of_plot(name), access.may_see_judges(user, evaluation))
    form = form_of(request, user, evaluation, ("as",))
    wanted = request.GET.get("as", PlotFormat.CSV.value)
    if wanted not in list(PlotFormat):
        fault = Fault("query.as", f"One of {', '.join(PlotFormat)}.")
        raise Problem("invalid", "There is no such format of plots.", faults=[fault])
    aspect = form.cleaned_data["aspect"]
    made = report_to(user, evaluation, form.rules(), (part,), aspect)
    keys = aspects_with(made, part)
    plot = plot_on_paper(made, name, aspect if aspect in keys else next(iter(keys), ""))
    if plot is None:
        raise Http404
    file = file_of(plot.told_of(of_what(user, evaluation, form)), PlotFormat(wanted))
    disposition = content_disposition_header(True, file.name) or ""
    return HttpResponse(file.content, content_type=file.content_type, headers={"Content-Disposition": disposition})


@operations.get_one("/evaluations/{slug:slug}/report/cell", Scope.READ, ComparisonPage, extra=asked(*CHOICES))
def list_cell(request: HttpRequest, slug: str, paging: Query[Paging]) -> ComparisonPage:
    """The comparisons that one cell of a judge's confusion matrix counts: one `judge`, one `aspect`, both choices."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug)
    if not access.may_see_judges(user, evaluation):
        raise Problem("forbidden", "The choices of judges are not shown to reviewers of this evaluation.")
    form = form_of(request, user, evaluation, (*OF_CELL, "cursor", "limit"))
    rules, comparisons = form.rules(), access.open_comparisons(user, evaluation)
    judge = judge_asked_for(evaluation, form)
    said: tuple[str, str] = request.GET.get("judge_choice", ""), request.GET.get("human_choice", "")
    ids = comparisons_in_cell(evaluation, comparisons, form.cleaned_data["aspect"], judge.pk, *said, rules=rules)
    start = bisect_right(ids, after_of(paging))
    shown = ids[start : start + paging.limit]
    rows = list(with_sides(comparisons.filter(pk__in=shown)))
    if access.may(user, Action.REVIEW, evaluation):
        note_seen(user, evaluation, few_of(comparisons, evaluation, rules) or rows)
    more = written(shown[-1]) if len(ids) > start + len(shown) else None
    return ComparisonPage(items=listed(user, evaluation, rows), next=more, is_whole=True)


def judge_asked_for(evaluation: Evaluation, form: ReportForm) -> Rater:
    names = form.cleaned_data["judge"]
    if len(names) != 1:
        fault = Fault("query.judge", "Name one judge.")
        raise Problem("invalid", "A cell is of one judge.", faults=[fault])
    found: Rater = get_object_or_404(Rater, evaluation=evaluation, kind=RaterKind.JUDGE, name=names[0])
    return found


def form_of(request: HttpRequest, user: User, evaluation: Evaluation, besides: tuple[str, ...]) -> ReportForm:
    form = ReportForm(
        request.GET,
        evaluation=evaluation,
        sees_all=access.may(user, Action.SEE_ALL, evaluation),
        sees_judges=access.may_see_judges(user, evaluation),
    )
    refuse_unknown(request.GET.dict(), form, besides)
    checked(form, "query")
    return form


def freely_narrowed(rules: Rules, asked: QueryDict) -> Rules:
    """By names of raters, and by keys and values that no field of the form knows."""
    where = []
    for pair in asked.getlist("where"):
        key, equals, value = pair.partition("=")
        if not key or not equals:
            fault = Fault("query.where", "Write it as key=value, for example category=math.")
            raise Problem("invalid", "“where” is a key and its value.", faults=[fault])
        where.append((key, value))
    return replace(rules, raters=asked.get("raters") or rules.raters, where=(*rules.where, *where))


def parts_in(request: HttpRequest, sees_judges: bool) -> tuple[Part, ...]:
    if asked_for := request.GET.get("only", ""):
        return (part_named(asked_for, sees_judges),)
    return ALL_PARTS if sees_judges else tuple(part for part in Part if part not in OF_JUDGES)


def part_named(name: str, sees_judges: bool) -> Part:
    if name not in list(Part) or (name in OF_JUDGES and not sees_judges):
        raise Http404
    return Part(name)


def report_to(user: User, evaluation: Evaluation, rules: Rules, parts: tuple[Part, ...], aspect: str) -> Report:
    """The report that this person may see. Where it is on few comparisons, they have seen what others chose on each."""
    of_one = (aspect or None) if any(part in BY_ASPECT for part in parts) else None
    sees_judges = access.may_see_judges(user, evaluation)
    comparisons = access.open_comparisons(user, evaluation)
    if access.may(user, Action.SEE_ALL, evaluation):
        made = report_for(evaluation, rules, parts=parts, aspect=of_one)
    else:
        made = make_report(evaluation, comparisons, rules, with_judges=sees_judges, parts=parts, aspect=of_one)
    if access.may(user, Action.REVIEW, evaluation):
        note_seen(user, evaluation, few_of(comparisons, evaluation, rules), judges=sees_judges)
    return made


def of_what(user: User, evaluation: Evaluation, form: ReportForm) -> str:
    """A picture travels without its page: which evaluation it is of, whose part, and by which filters and rules."""
    said = [evaluation.name, *(f"{one.label}: {one.value}" for one in form.in_force())]
    if not access.may(user, Action.SEE_ALL, evaluation):
        said.append(f"only comparisons that {user.username} has reviewed")
    return "; ".join(said) + "."
