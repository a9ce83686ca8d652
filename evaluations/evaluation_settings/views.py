"""Pages on which an evaluation's settings, bars of decisions and model families are changed."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from evaluations.access import Action, require_evaluation
from evaluations.domain.decisions import DecisionBars
from evaluations.evaluation_settings.forms import BarsForm, FamiliesForm, SettingsForm
from evaluations.evaluation_settings.selectors import (
    can_ask_for_overall,
    count_responses_by_candidate,
    describe_bar_change,
    get_bars_set_at,
    get_rubric_change_impact,
    list_candidates_and_judges,
)
from evaluations.evaluation_settings.services import (
    change_bars,
    change_settings,
    move_to_archive,
    read_bars,
    rename_candidates,
    set_families,
    take_from_archive,
)
from evaluations.models.evaluations import Evaluation
from evaluations.web.forms import submit_form
from evaluations.web.requests import AuthenticatedRequest


@require_http_methods(["GET", "HEAD", "POST"])
def evaluation_settings(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The form; a POST with ``step=look`` shows the guidelines as reviewers will see them, any other saves."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    form = SettingsForm(request.POST or None, evaluation=evaluation)
    if request.POST.get("step") == "look":
        return render_guidelines_preview(request, evaluation, form)
    saved = submit_form(form, change_settings, evaluation, form.settings(), user=user) if form.is_valid() else None
    if saved is not None:
        messages.success(request, "Saved.")
        return redirect("evaluation_settings", slug)
    return render_settings(request, evaluation, form, status=422 if request.method == "POST" else 200)


def render_guidelines_preview(
    request: AuthenticatedRequest, evaluation: Evaluation, form: SettingsForm
) -> HttpResponse:
    """The guidelines as they are being written; nothing is stored."""
    text = request.POST.get("guidelines", "")
    if request.htmx:
        return render(request, "evaluation_settings/_guidelines_preview.html", {"evaluation": evaluation, "text": text})
    return render_settings(request, evaluation, form, text=text, is_looking=True)


def render_settings(
    request: AuthenticatedRequest, evaluation: Evaluation, form: SettingsForm, status: int = 200, **extra: object
) -> HttpResponse:
    context = {
        "page": "evaluation_settings",
        "evaluation": evaluation,
        "form": form,
        "ending": get_rubric_change_impact(evaluation),
        "offers_overall": can_ask_for_overall(evaluation),
        **extra,
    }
    return render(request, "evaluation_settings/evaluation_settings.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def evaluation_decisions(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The bars of decisions; a POST with ``step=restore`` sets the defaults, any other saves the form."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    if request.POST.get("step") == "restore":
        change_bars(evaluation, DecisionBars(), user=user)
        messages.success(request, "Defaults restored.")
        return redirect("evaluation_decisions", slug)
    form = BarsForm(request.POST or None, bars=read_bars(evaluation))
    saved = submit_form(form, change_bars, evaluation, form.bars(), user=user) if form.is_valid() else None
    if saved is not None:
        messages.success(request, "Saved.")
        return redirect("evaluation_decisions", slug)
    return render_bars(request, evaluation, form)


def render_bars(request: AuthenticatedRequest, evaluation: Evaluation, form: BarsForm) -> HttpResponse:
    context = {
        "page": "evaluation_decisions",
        "evaluation": evaluation,
        "form": form,
        "set_at": get_bars_set_at(evaluation),
        "late_change": describe_bar_change(evaluation),
        "are_defaults": read_bars(evaluation) == DecisionBars(),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "evaluation_decisions/evaluation_decisions.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
def evaluation_archive(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    if request.method != "POST":
        context = {"page": "evaluation_archive", "evaluation": evaluation}
        return render(request, "evaluation_archive/evaluation_archive.html", context)
    move_to_archive(evaluation, user=user)
    messages.success(request, f"“{evaluation.name}” archived. Restore it in its settings.")
    return redirect("evaluations")


@require_POST
def evaluation_restore(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    take_from_archive(evaluation, user=user)
    messages.success(request, f"“{evaluation.name}” restored.")
    return redirect("evaluation", slug)


@require_http_methods(["GET", "HEAD", "POST"])
def model_families(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    candidates, judges = list_candidates_and_judges(evaluation)
    form = FamiliesForm(request.POST or None, candidates=candidates, judges=judges)
    renamed = None
    if form.is_valid():
        renamed = submit_form(form, rename_candidates, evaluation, form.get_names(), user=user)
    if renamed is not None:
        changed = set_families(evaluation, form.get_families("candidate"), form.get_families("judge"), user=user)
        messages.success(request, "Saved." if changed + renamed else "Nothing changed.")
        return redirect("model_families", slug)
    context = {
        "page": "model_families",
        "evaluation": evaluation,
        "form": form,
        "responses": count_responses_by_candidate(evaluation),
    }
    return render(
        request, "model_families/model_families.html", context, status=422 if request.method == "POST" else 200
    )
