"""The report in the API, with its charts as files, and the reviewers whom it leaves out."""

from dataclasses import replace
from typing import Final

from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404
from ninja import Query, Schema

from evaluations.access import Action, is_allowed, require_evaluation
from evaluations.api.comparison_rows import ComparisonPageOut, select_row_columns, serialize_comparisons
from evaluations.api.form_validation import validate_filters
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import PageQuery, decode_cursor, encode_cursor, paginate_by_cursor
from evaluations.api.problems import FieldError, Problem
from evaluations.api.serializers import serialize_user
from evaluations.domain.choices import Choice
from evaluations.domain.json_values import JsonDict
from evaluations.domain.reports import PlotFormat, ReportPart, ReportRules
from evaluations.domain.reviews import ScreeningChoice
from evaluations.domain.roles import RaterKind, Scope
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.users import User
from evaluations.reports.cells.selectors import ReportCell, reveal_comparisons_in_cell
from evaluations.reports.chart_files import JUDGE_PARTS, build_requested_chart, get_part_name, get_part_or_404
from evaluations.reports.forms import ReportForm
from evaluations.reports.large_differences import LargeDifference, reveal_large_differences
from evaluations.reports.schemas import ReviewerPage, ScreenedReviewerOut, ScreeningIn
from evaluations.reports.selectors import ALL_PARTS, reveal_report
from evaluations.reports.services import choose_reviewer
from evaluations.visibility import can_see_judges, visible_comparisons
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["report"])
FILTERS: Final = {
    "judge": "only these judges; repeatable",
    "saved_filter": "the name of a saved filter",
    "category": "of the query",
    "candidate_1": "only comparisons of this candidate",
    "candidate_2": "against this one",
    "reviewer": "only these reviewers; repeatable",
    "with_excluded": "true: count reviewers whom the owner excluded, too",
    "since": "first day of votes, such as 2026-01-31",
    "until": "last day of votes",
    "seen": "what reviewers had seen of the judge: nothing, blind or judge",
    "split_rule": "split majorities: tie, drop or first",
    "failed": "failed verdicts: exclude or tie",
    "coding": "sides: candidate or shown",
    "part": "only this part of the evaluation's split: train, dev or test",
    "pass_from": "the score from which a single response passes, such as 4; default: the better score of two",
    "pairs": "all: every pair of reviewers, even above 30 reviewers",
    "aspect": "the aspect, for parts that show one at a time",
}
REPEATABLE: Final = ("judge", "reviewer")
STRING_LIST: Final = {"type": "array", "items": {"type": "string"}}


def build_parameters(*extra: JsonDict) -> JsonDict:
    parameters = [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": words,
            "schema": STRING_LIST if name in REPEATABLE else {"type": "string"},
        }
        for name, words in FILTERS.items()
    ]
    return {"parameters": [*parameters, *extra]}


ONLY_PARAMETER: Final = {
    "name": "only",
    "in": "query",
    "required": False,
    "description": "only this part of the report; default: all that you may see",
    "schema": {"type": "string", "enum": [part.value for part in ReportPart]},
}
# Open to those who see everything: both can name a candidate or a person.
FREE_FILTERS: Final = {
    "raters": "only raters whose name matches; * matches anything",
    "where": "KEY=VALUE; repeatable",
}
RATERS_PARAMETER: Final = {
    "name": "raters",
    "in": "query",
    "description": FREE_FILTERS["raters"],
    "schema": {"type": "string"},
}
WHERE_PARAMETER: Final = {"name": "where", "in": "query", "description": FREE_FILTERS["where"], "schema": STRING_LIST}
FORMAT_PARAMETER: Final = {
    "name": "as",
    "in": "query",
    "required": False,
    "schema": {
        "type": "string",
        "enum": [word.value for word in PlotFormat],
        "default": PlotFormat.CSV.value,
    },
}
CELL_FILTERS: Final = {"judge_choice": "the judge's verdict", "human_choice": "the majority of the reviewers"}
CHOICE_SCHEMA: Final = {"type": "string", "enum": [choice.value for choice in Choice]}
CELL_PARAMETERS: Final = [
    {"name": name, "in": "query", "required": True, "description": words, "schema": CHOICE_SCHEMA}
    for name, words in CELL_FILTERS.items()
]
FILE_RESPONSE: Final = {
    "responses": {
        200: {"description": "the plot", "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
    }
}


@operations.get_one(
    "/evaluations/{slug:slug}/report",
    Scope.READ,
    JsonDict,
    extra=build_parameters(ONLY_PARAMETER, RATERS_PARAMETER, WHERE_PARAMETER),
)
def get_report(request: AuthenticatedRequest, slug: str) -> JsonDict:
    """Get every number with its interval. Undefined ones are null with a `why`; see the page on statistics."""
    user = request.user
    evaluation = require_evaluation(user, slug)
    sees_all = is_allowed(user, Action.SEE_ALL, evaluation)
    form = build_report_form(request, user, evaluation, ("only", "raters", "where") if sees_all else ("only",))
    rules = add_free_filters(form.rules(), request.GET)
    parts = parse_parts(request, can_see_judges(user, evaluation))
    report: dict[str, object] = reveal_report(
        user, evaluation, rules, parts, form.cleaned_data["aspect"] or None
    ).as_json()
    return report


@operations.get_one(
    "/evaluations/{slug:slug}/report/plots/{slug:name}",
    Scope.READ,
    None,
    extra={**build_parameters(FORMAT_PARAMETER), **FILE_RESPONSE},
)
def get_plot(request: AuthenticatedRequest, slug: str, name: str) -> HttpResponse:
    """Download a chart of the report, with the same filters."""
    user = request.user
    evaluation = require_evaluation(user, slug)
    part = get_part_or_404(get_part_name(name), sees_judges=can_see_judges(user, evaluation))
    form = build_report_form(request, user, evaluation, ("as",))
    chart_format = request.GET.get("as", PlotFormat.CSV.value)
    if chart_format not in list(PlotFormat):
        fault = FieldError("query.as", f"One of {', '.join(PlotFormat)}.")
        raise Problem("invalid", "Unknown chart format.", faults=[fault])
    return build_requested_chart(user, form, part, name, form.cleaned_data["aspect"] or None, PlotFormat(chart_format))


class LargeDifferenceOut(Schema):
    query_id: str
    candidate: str
    response: int
    judge: float
    reviewers: float
    n_reviewers: int
    comparison: int | None


class LargeDifferenceListOut(Schema):
    items: list[LargeDifferenceOut]


@operations.get_one(
    "/evaluations/{slug:slug}/report/differences", Scope.READ, LargeDifferenceListOut, extra=build_parameters()
)
def list_large_differences(request: AuthenticatedRequest, slug: str) -> LargeDifferenceListOut:
    """The 20 responses on which one `judge` and the mean of reviewers differ most on one `aspect`, by scores."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.SEE_ALL)
    form = build_report_form(request, user, evaluation, ())
    judge, aspect = get_judge_or_404(evaluation, form).name, form.cleaned_data["aspect"]
    found = reveal_large_differences(user, evaluation, form.rules(), aspect, judge)
    return LargeDifferenceListOut(items=[serialize_large_difference(one) for one in found])


def serialize_large_difference(one: LargeDifference) -> LargeDifferenceOut:
    return LargeDifferenceOut(
        query_id=one.response.query.key,
        candidate=one.response.candidate.name,
        response=one.response.pk,
        judge=one.judge_score,
        reviewers=one.reviewers_score,
        n_reviewers=one.reviewers,
        comparison=one.comparison,
    )


@operations.get_one(
    "/evaluations/{slug:slug}/report/cell", Scope.READ, ComparisonPageOut, extra=build_parameters(*CELL_PARAMETERS)
)
def list_cell(request: AuthenticatedRequest, slug: str, paging: Query[PageQuery]) -> ComparisonPageOut:
    """The comparisons that one cell of a judge's confusion matrix counts: one `judge`, one `aspect`, both choices."""
    user = request.user
    evaluation = require_evaluation(user, slug)
    if not can_see_judges(user, evaluation):
        raise Problem("forbidden", "The choices of judges are not shown to reviewers of this evaluation.")
    form = build_report_form(request, user, evaluation, (*CELL_FILTERS, "cursor", "limit"))
    rules, comparisons = form.rules(), visible_comparisons(user, evaluation)
    judge = get_judge_or_404(evaluation, form)
    choices = request.GET.get("judge_choice", ""), request.GET.get("human_choice", "")
    cell = ReportCell(form.cleaned_data["aspect"], judge.pk, *choices)
    ids = reveal_comparisons_in_cell(
        user, evaluation, comparisons, cell, rules, after=decode_cursor(paging), size=paging.limit
    )
    shown = ids[: paging.limit]
    rows = list(select_row_columns(comparisons.filter(pk__in=shown)))
    next_cursor = encode_cursor(shown[-1]) if len(ids) > len(shown) else None
    return ComparisonPageOut(items=serialize_comparisons(user, evaluation, rows), next=next_cursor, is_whole=True)


@operations.get_one("/evaluations/{slug:slug}/reviewers", Scope.READ, ReviewerPage)
def list_reviewers(request: AuthenticatedRequest, slug: str, paging: Query[PageQuery]) -> ReviewerPage:
    """List those who reviewed or whose votes were imported, and whether results count them."""
    evaluation = require_evaluation(request.user, slug, Action.SEE_ALL)
    raters = Rater.objects.filter(evaluation=evaluation, kind=RaterKind.HUMAN).select_related("screening_chosen_by")
    rows, next_cursor = paginate_by_cursor(paging, raters)
    return ReviewerPage(items=[serialize_reviewer(rater) for rater in rows], next=next_cursor)


@operations.set("/evaluations/{slug:slug}/reviewers/{int:pk}/screening", Scope.ADMIN, ScreenedReviewerOut)
def screen_reviewer(request: AuthenticatedRequest, slug: str, pk: int, body: ScreeningIn) -> ScreenedReviewerOut:
    """Keep a reviewer in results, exclude them, or undo the choice. Labels and exports stay as they are."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    rater = get_object_or_404(Rater, evaluation=evaluation, kind=RaterKind.HUMAN, pk=pk)
    return serialize_reviewer(choose_reviewer(evaluation, rater, body.choice, user=user))


def serialize_reviewer(rater: Rater) -> ScreenedReviewerOut:
    chosen_by = rater.screening_chosen_by
    return ScreenedReviewerOut(
        id=rater.pk,
        name=rater.name,
        choice=ScreeningChoice(rater.screening_choice) if rater.screening_choice else "",
        chosen_at=rater.screening_chosen_at,
        chosen_by=serialize_user(chosen_by) if chosen_by else None,
    )


def get_judge_or_404(evaluation: Evaluation, form: ReportForm) -> Rater:
    names = form.cleaned_data["judge"]
    if len(names) != 1:
        fault = FieldError("query.judge", "Name one judge.")
        raise Problem("invalid", "A cell belongs to one judge.", faults=[fault])
    judge: Rater = get_object_or_404(Rater, evaluation=evaluation, kind=RaterKind.JUDGE, name=names[0])
    return judge


def build_report_form(
    request: AuthenticatedRequest, user: User, evaluation: Evaluation, other_parameters: tuple[str, ...]
) -> ReportForm:
    form = ReportForm(
        request.GET,
        evaluation=evaluation,
        sees_all=is_allowed(user, Action.SEE_ALL, evaluation),
        sees_judges=can_see_judges(user, evaluation),
    )
    validate_filters(request, form, other_parameters)
    return form


def add_free_filters(rules: ReportRules, query: QueryDict) -> ReportRules:
    """The rules with the filters by names of raters and by keys and values, which the form does not have."""
    where = []
    for pair in query.getlist("where"):
        key, equals, value = pair.partition("=")
        if not key or not equals:
            fault = FieldError("query.where", "Write it as key=value, for example category=math.")
            raise Problem("invalid", "“where” must be key=value.", faults=[fault])
        where.append((key, value))
    return replace(rules, raters=query.get("raters") or rules.raters, where=(*rules.where, *where))


def parse_parts(request: AuthenticatedRequest, sees_judges: bool) -> tuple[ReportPart, ...]:
    if name := request.GET.get("only", ""):
        return (get_part_or_404(name, sees_judges=sees_judges),)
    return ALL_PARTS if sees_judges else tuple(part for part in ReportPart if part not in JUDGE_PARTS)
