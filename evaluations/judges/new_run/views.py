"""The page that starts a run: of judges that exist, or of a new one that is created with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from evaluations.access import Action, require_evaluation, require_site_administrator
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import RunChannel, RunOrders
from evaluations.judges.endpoints.grants import list_selectable_endpoints
from evaluations.judges.endpoints.selectors import list_endpoint_models, summarize_checks
from evaluations.judges.forms import RULE_CHOICES, JudgeForm
from evaluations.judges.new_run.forms import EndpointTestForm
from evaluations.judges.new_run.providers import PROVIDERS, PROVIDERS_BY_SLUG, Provider
from evaluations.judges.new_run.services import (
    EndpointAccess,
    add_tested_endpoint,
    draft_judge,
    retest_endpoint,
    start_new_judge,
)
from evaluations.judges.runs.estimates import RunEstimate, ValueRange, estimate_run
from evaluations.judges.runs.forms import RunForm
from evaluations.judges.runs.selection import RunOptions
from evaluations.judges.runs.selectors import list_runnable_judges
from evaluations.judges.runs.services import start_panel
from evaluations.models.comparison_filter import filter_evaluation
from evaluations.models.comparisons import SavedFilter
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint, Judge
from evaluations.models.runs import Run
from evaluations.models.users import User
from evaluations.web.forms import submit_form
from evaluations.web.requests import AuthenticatedRequest

PANEL_ID: Final = "panel"  # the part of the page that a choice replaces
OTHER_PROVIDER: Final = PROVIDERS_BY_SLUG["other"]
ADMINISTRATORS_NAMED: Final = 3
MAX_MODELS_SHOWN: Final = 500


@dataclass(frozen=True)
class JudgeEstimate:
    """The estimate of one of the chosen judges."""

    judge: Judge
    estimate: RunEstimate


@dataclass(frozen=True)
class JudgeSource:
    """Where the judge of the run comes from: judges that exist, an endpoint, a provider to add, or a rule."""

    endpoint: Endpoint | None = None
    provider: Provider | None = None
    rule: str = ""
    has_judges: bool = False

    @property
    def is_new_judge(self) -> bool:
        return self.endpoint is not None or bool(self.rule)


@require_http_methods(["GET", "HEAD", "POST"])
def run_new(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The panel with an estimate; ``judge``, ``endpoint``, ``provider`` or ``rule`` in the address choose the judge."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    query = request.POST if request.method == "POST" else request.GET
    source = choose_source(request, evaluation, query)
    if request.method != "POST":
        return render_panel(request, evaluation, source, *build_forms(request, evaluation, source, None))
    run_form, judge_form = build_forms(request, evaluation, source, request.POST)
    if run_form.is_valid() and (not source.is_new_judge or judge_form.is_valid()):
        user, options = request.user, run_form.options()
        if source.is_new_judge:
            settings = judge_form.settings()
            run = submit_form(judge_form, start_new_judge, evaluation, settings, user=user, **options)
            runs = [run] if run else None
        else:
            runs = submit_form(run_form, start_panel, list(run_form.cleaned_data["judge"]), user=user, **options)
        if runs:
            return redirect_to_started_runs(request, runs)
    return render_panel(request, evaluation, source, run_form, judge_form, status=422)


def choose_source(request: AuthenticatedRequest, evaluation: Evaluation, query: QueryDict) -> JudgeSource:
    """What the fields choose; else the judges that exist, else the newest endpoint."""
    endpoints = list_selectable_endpoints(request.user, evaluation)
    has_judges = list_runnable_judges(evaluation).exists()
    if "judge" in query:
        return JudgeSource(has_judges=has_judges)
    endpoint, rule, provider = (str(query.get(name, "")) for name in ("endpoint", "rule", "provider"))
    if endpoint:
        return JudgeSource(get_endpoint_or_404(endpoints, endpoint), has_judges=has_judges)
    if rule in dict(RULE_CHOICES):
        return JudgeSource(rule=rule, has_judges=has_judges)
    if request.user.is_superuser and provider in PROVIDERS_BY_SLUG:
        return JudgeSource(provider=PROVIDERS_BY_SLUG[provider], has_judges=has_judges)
    newest = None if has_judges or request.method == "POST" else endpoints.order_by("-pk").first()
    return JudgeSource(newest, has_judges=has_judges)


def get_endpoint_or_404(endpoints: "QuerySet[Endpoint]", chosen: str) -> Endpoint:
    is_id = chosen.isascii() and chosen.isdecimal() and len(chosen) < 19
    return get_object_or_404(endpoints, pk=chosen if is_id else -1)


def build_forms(
    request: AuthenticatedRequest, evaluation: Evaluation, source: JudgeSource, data: QueryDict | None
) -> tuple[RunForm, JudgeForm]:
    """The form of the run and the form of its new judge, which is used if the source makes one."""
    query, endpoint = request.GET.dict(), source.endpoint
    flags = {"is_new_judge": source.is_new_judge, "is_llm": endpoint is not None}
    run_form = RunForm(data, initial=query, evaluation=evaluation, **flags)
    initial: dict[str, object] = {**query, "rule": source.rule}
    if endpoint is not None:
        initial = {"model": list_endpoint_models(endpoint, evaluation).suggested, **query, "endpoint": endpoint.pk}
    endpoints = list_selectable_endpoints(request.user, evaluation)
    sent = data if source.is_new_judge else None
    judge_form = JudgeForm(sent, initial=initial, evaluation=evaluation, endpoints=endpoints)
    judge_form.fields["model"].required = endpoint is not None
    return run_form, judge_form


def redirect_to_started_runs(request: AuthenticatedRequest, runs: Sequence[Run]) -> HttpResponse:
    messages.success(request, "Run started." if len(runs) == 1 else f"{len(runs)} runs started.")
    slug = runs[0].evaluation.slug
    return redirect("run", slug, runs[0].pk) if len(runs) == 1 else redirect("runs", slug)


def render_panel(
    request: AuthenticatedRequest,
    evaluation: Evaluation,
    source: JudgeSource,
    run_form: RunForm,
    judge_form: JudgeForm,
    test_form: EndpointTestForm | None = None,
    status: int = 200,
) -> HttpResponse:
    query = request.POST if request.method == "POST" else request.GET
    context = {"evaluation": evaluation, **estimate_context(evaluation, source, query, run_form, judge_form)}
    if request.htmx and request.method == "GET" and request.htmx.target != PANEL_ID:
        return render(request, "run_new/_estimates.html", context)
    is_administrator = request.user.is_superuser
    endpoints = list_selectable_endpoints(request.user, evaluation)
    context |= {
        "source": source,
        "form": run_form,
        "judge_form": judge_form,
        "test_form": test_form or build_test_form(source),
        "endpoints": endpoints,
        "providers": PROVIDERS if is_administrator else (),
        "administrators": list_administrators() if not is_administrator and not endpoints.exists() else (),
        "rules": RULE_CHOICES,
    }
    if source.endpoint is not None:
        models = list_endpoint_models(source.endpoint, evaluation)
        context |= {"endpoint": source.endpoint, "models": models.names[:MAX_MODELS_SHOWN]}
        context |= vars(summarize_checks(source.endpoint))
    return render(request, "run_new/run_new.html", context, status=status)


def build_test_form(source: JudgeSource) -> EndpointTestForm | None:
    if source.endpoint is not None:
        return EndpointTestForm(provider=find_provider(source.endpoint), endpoint=source.endpoint)
    return EndpointTestForm(provider=source.provider) if source.provider else None


def find_provider(endpoint: Endpoint) -> Provider:
    """The provider whose address the endpoint has, else one whose address is typed."""
    known = (preset for preset in PROVIDERS if preset.has_own_url and preset.base_url == endpoint.base_url)
    return next(known, OTHER_PROVIDER)


def list_administrators() -> list[str]:
    administrators = User.objects.filter(is_superuser=True, is_active=True).order_by("pk")
    return list(administrators.values_list("username", flat=True)[:ADMINISTRATORS_NAMED])


@require_POST
def run_new_test(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """Add an endpoint and test it, or test one again with another key. For site administrators."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    require_site_administrator(request.user)
    source = choose_source(request, evaluation, request.POST)
    endpoint, provider = source.endpoint, source.provider or OTHER_PROVIDER
    form = EndpointTestForm(request.POST, provider=find_provider(endpoint) if endpoint else provider, endpoint=endpoint)
    if form.is_valid():
        access = EndpointAccess(**form.cleaned_data)
        if endpoint is None:
            endpoint = submit_form(form, add_tested_endpoint, provider, access, user=request.user)
        else:
            submit_form(form, retest_endpoint, endpoint, access, user=request.user)
        if endpoint is not None and not form.errors:
            query = urlencode({"endpoint": endpoint.pk})
            return redirect(f"{reverse('run_new', args=[slug])}?{query}")
    forms = build_forms(request, evaluation, source, None)
    return render_panel(request, evaluation, source, *forms, test_form=form, status=422)


def estimate_context(
    evaluation: Evaluation, source: JudgeSource, query: QueryDict, run_form: RunForm, judge_form: JudgeForm
) -> dict[str, Any]:
    """The chosen judges with their estimates, or why there is none yet."""
    options = estimate_options(query)
    if (saved_filter := run_form.saved_filters.get(query.get("saved_filter", ""))) and is_usable_filter(saved_filter):
        options["saved_filter"] = saved_filter.named
    judges, note = [], ""
    if source.is_new_judge:
        chosen, note = draft_chosen_judge(evaluation, query, judge_form)
    else:
        judges = list(list_runnable_judges(evaluation))
        chosen = find_selected_judges(judges, query)
    estimates = [JudgeEstimate(judge, estimate_run(judge, **options)) for judge in chosen]
    return {
        "judges": [(judge, judge in chosen) for judge in judges],
        "estimates": estimates,
        "estimate_note": note,
        "together": sum_estimates([estimate.estimate for estimate in estimates]) if len(chosen) > 1 else None,
    }


def draft_chosen_judge(evaluation: Evaluation, query: QueryDict, judge_form: JudgeForm) -> tuple[list[Judge], str]:
    """The judge that the fields describe, not stored; or none, and what is missing."""
    form = judge_form
    if not form.is_bound:
        values: dict[str, object] = {name: judge_form[name].value() for name in form.fields}
        if "mode" in query:  # the fields themselves: what is unchecked is absent
            values = {**dict.fromkeys(form.fields, ""), **query.dict()}
        version = values["version"]
        values["version"] = getattr(version, "pk", version)
        endpoints: Any = form.fields["endpoint"]
        form = JudgeForm(drop_empty(values), evaluation=evaluation, endpoints=endpoints.queryset)
    if not form.is_valid():
        return [], "Complete the fields to see the estimate."
    try:
        return [draft_judge(evaluation, form.settings())], ""
    except InputRefused as refused:
        return [], str(refused)


def drop_empty(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in values.items() if value not in (None, "", False)}


def is_usable_filter(saved_filter: SavedFilter) -> bool:
    """Whether everything that the filter names still exists; starting a run reports what does not."""
    try:
        filter_evaluation(saved_filter.evaluation, saved_filter.comparison_filter)
    except InputRefused:
        return False
    return True


def find_selected_judges(judges: Sequence[Judge], query: QueryDict) -> list[Judge]:
    """The chosen judges; the newest one before any was chosen."""
    if not query:
        return list(judges[:1])
    return [judge for judge in judges if str(judge.pk) in query.getlist("judge")]


def estimate_options(query: QueryDict) -> RunOptions:
    """The run options in these fields; invalid fields count as their defaults."""
    orders = query.get("orders")
    return RunOptions(
        orders=RunOrders(orders) if orders in set(RunOrders) else RunOrders.BOTH,
        samples=parse_positive_number(query.get("samples"), 100) or 1,
        limit=parse_positive_number(query.get("limit"), 10**9),
        ask_failures_again=bool(query.get("ask_failures_again")),
        channel=RunChannel.BATCH if query.get("channel") == RunChannel.BATCH else RunChannel.LIVE,
    )


def parse_positive_number(text: str | None, highest: int) -> int | None:
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 12 and 1 <= int(text) <= highest else None


def sum_estimates(estimates: Sequence[RunEstimate]) -> dict[str, object]:
    """The sums of a panel. One unknown price makes the total unknown, if it has calls to buy."""
    total: ValueRange | None = ValueRange(0, 0)
    for estimate in estimates:
        if estimate.calls:
            total = total.plus(estimate.cost) if total and estimate.cost else None
    return {"calls": sum(estimate.calls for estimate in estimates), "cost": total}
