"""One plot of a report to take away, by the filters of the page that it stands on."""

from typing import cast

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused, Part, PlotFormat
from evaluations.forms.report import ReportForm
from evaluations.models import Evaluation, User
from evaluations.services.reporting.plotting import PlotFile, file_of, part_of_plot, plot_on_paper
from evaluations.web.plotting import FORMAT, file_response
from evaluations.web.report import part_named, report_to
from evaluations.web.report_parts import aspect_of


@require_safe
def report_plot(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug)
    sees_all, sees_judges = access.may(user, Action.SEE_ALL, evaluation), access.may_see_judges(user, evaluation)
    part = part_named(part_of_plot(name), sees_judges)
    form = ReportForm(request.GET, evaluation=evaluation, sees_all=sees_all, sees_judges=sees_judges)
    if not form.is_valid():
        return refusal(form.complaints())
    try:
        return file_response(plot_file(user, evaluation, form, part, name, format_in(request)))
    except InputRefused as refused:
        return refusal([str(refused)])


def format_in(request: HttpRequest) -> PlotFormat:
    asked = request.GET.get(FORMAT, PlotFormat.CSV.value)
    if asked not in list(PlotFormat):
        raise Http404
    return PlotFormat(asked)


def plot_file(
    user: User, evaluation: Evaluation, form: ReportForm, part: Part, name: str, form_of_file: PlotFormat
) -> PlotFile:
    report = report_to(user, evaluation, form, part)
    plot = plot_on_paper(report, name, aspect_of(report, part, form.cleaned_data["aspect"]))
    if plot is None:
        raise Http404
    return file_of(plot.told_of(of_what(user, evaluation, form)), form_of_file)


def of_what(user: User, evaluation: Evaluation, form: ReportForm) -> str:
    """A picture travels without its page: which evaluation it is of, whose part, and by which filters and rules."""
    said = [evaluation.name, *(f"{one.label}: {one.value}" for one in form.in_force())]
    if not access.may(user, Action.SEE_ALL, evaluation):
        said.append(f"only comparisons that {user.username} has reviewed")
    return "; ".join(said) + "."


def refusal(reasons: list[str]) -> HttpResponse:
    return HttpResponse("\n".join(reasons), status=422, content_type="text/plain; charset=utf-8")
