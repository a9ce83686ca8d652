"""The report: the same numbers as `manage.py report --json`, for what this person may see; and its plots as files."""

from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.http import content_disposition_header

from evaluations import access
from evaluations.access import Action
from evaluations.api.admission import person
from evaluations.api.forms import checked, refuse_unknown
from evaluations.api.operations import Operations
from evaluations.api.problems import Fault, Problem
from evaluations.domain import Part, PlotFormat, Scope
from evaluations.forms.report import ReportForm
from evaluations.models import Evaluation, User
from evaluations.services.reporting.narrowing import few_of
from evaluations.services.reporting.noticing import note_seen
from evaluations.services.reporting.plotting import aspects_with, file_of, part_of_plot, plot_on_paper
from evaluations.services.reporting.reporting import ALL_PARTS, BY_ASPECT, Report, make_report, report_for

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


PART: Final = {
    "name": "part",
    "in": "query",
    "required": False,
    "description": "one part alone; empty: all that you may see",
    "schema": {"type": "string", "enum": [part.value for part in Part]},
}
AS: Final = {
    "name": "as",
    "in": "query",
    "required": False,
    "schema": {"type": "string", "enum": [one.value for one in PlotFormat], "default": PlotFormat.CSV.value},
}
FILE: Final = {
    "responses": {
        200: {"description": "the plot", "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
    }
}


@operations.get_one("/evaluations/{slug:slug}/report", Scope.READ, dict[str, Any], extra=asked(PART))
def get_report(request: HttpRequest, slug: str) -> dict[str, Any]:
    """Every number with its interval; what is undefined is null with a `why`. See the page on statistics."""
    user = person(request)
    evaluation = access.evaluation_for(user, slug)
    form = form_of(request, user, evaluation, ("part",))
    made = report_to(user, evaluation, form, parts_in(request, access.may_see_judges(user, evaluation)))
    told: dict[str, Any] = made.as_json()
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
    made = report_to(user, evaluation, form, (part,))
    keys = aspects_with(made, part)
    aspect = form.cleaned_data["aspect"]
    plot = plot_on_paper(made, name, aspect if aspect in keys else next(iter(keys), ""))
    if plot is None:
        raise Http404
    file = file_of(plot.told_of(of_what(user, evaluation, form)), PlotFormat(wanted))
    disposition = content_disposition_header(True, file.name) or ""
    return HttpResponse(file.content, content_type=file.content_type, headers={"Content-Disposition": disposition})


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


def parts_in(request: HttpRequest, sees_judges: bool) -> tuple[Part, ...]:
    if asked_for := request.GET.get("part", ""):
        return (part_named(asked_for, sees_judges),)
    return ALL_PARTS if sees_judges else tuple(part for part in Part if part not in OF_JUDGES)


def part_named(name: str, sees_judges: bool) -> Part:
    if name not in list(Part) or (name in OF_JUDGES and not sees_judges):
        raise Http404
    return Part(name)


def report_to(user: User, evaluation: Evaluation, form: ReportForm, parts: tuple[Part, ...]) -> Report:
    """The report that this person may see. Where it is on few comparisons, they have seen what others chose on each."""
    rules, aspect = form.rules(), form.cleaned_data["aspect"] or None
    of_one = aspect if any(part in BY_ASPECT for part in parts) else None
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
