"""The steps on the review page: save, confirm, skip, undo, and a second look once the judge has answered."""

from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST
from django_htmx.http import push_url, reswap, retarget

from evaluations.domain import InputRefused, ReviewState
from evaluations.forms.review import ChoicesForm, SkipForm, StepForm
from evaluations.models import Review
from evaluations.services.reviewing import reviewing
from evaluations.web.choice_panel import Fields, versions, written
from evaluations.web.desk import (
    PANEL,
    Desk,
    at_desk,
    go_on,
    goes_ahead,
    is_fragment,
    sheet_of,
    shown,
    stamped,
    to_result,
)

RUBRIC_CHANGED = "The rubric was changed while this page was open: look at its questions again. Nothing was stored."


@require_POST
@at_desk
def review_save(desk: Desk) -> HttpResponse:
    """The first choices: then the judge's appear, or the next comparison where there are none."""
    form = ChoicesForm(desk.spec, desk.request.POST)
    try:
        given = entered_at(desk, form)
        saved = reviewing.save_first(
            desk.user,
            desk.comparison,
            choices=form.choices(),
            seen_verdicts=desk.seen_verdicts(),
            version=given["version"],
            note=given["note"],
            active_ms=given["active_ms"],
        )
    except InputRefused as refusal:
        return refused(desk, refusal, form, stage="choose")
    return after_saving(desk, saved, leads_on=saved.state == ReviewState.FINAL)


@require_POST
@at_desk
def review_confirm(desk: Desk) -> HttpResponse:
    """The final choices: confirmed or changed in sight of the judge's."""
    form = ChoicesForm(desk.spec, desk.request.POST)
    try:
        given = entered_at(desk, form)
        saved = reviewing.save_final(
            desk.user,
            desk.comparison,
            choices=form.choices(),
            notes=form.notes(),
            reasons=form.reasons(),
            version=given["version"],
            note=given["note"],
            active_ms=given["active_ms"],
        )
    except InputRefused as refusal:
        return refused(desk, refusal, form, stage="confirm")
    return after_saving(desk, saved, leads_on=desk.request.POST.get("then") == "next" or goes_ahead(desk.request))


@require_POST
@at_desk
def review_skip(desk: Desk) -> HttpResponse:
    try:
        given = entered_at(desk, SkipForm(desk.request.POST))
        skipped = reviewing.skip(
            desk.user,
            desk.comparison,
            reason=given["reason"],
            version=given["version"],
            active_ms=given["active_ms"],
        )
    except InputRefused as refusal:
        return refused(desk, refusal)
    return after_saving(desk, skipped, leads_on=True)


@require_POST
@at_desk
def review_undo(desk: Desk) -> HttpResponse:
    """Back to that comparison, with what was chosen, or what is sent along, in its fields."""
    sent = ChoicesForm(desk.spec, desk.request.POST)
    try:
        given = entered_at(desk, StepForm(desk.request.POST))
        reviewing.undo(
            desk.user,
            review_of(desk),
            version=given["version"],
            tab=given["tab"],
            active_ms=given["active_ms"],
            seen_verdicts=desk.seen_verdicts(),
            instead={name: value for name, value in sent.entered().items() if value} if sent.is_valid() else None,
        )
    except InputRefused as refusal:
        return refused(desk, refusal)
    return push_url(shown(desk), desk.address) if is_fragment(desk.request) else redirect(desk.address)


@require_POST
@at_desk
def review_again(desk: Desk) -> HttpResponse:
    """The judge has answered since: look at its choices, or leave one's own as they are."""
    leaves = desk.request.POST.get("then") == "leave"
    try:
        given = entered_at(desk, StepForm(desk.request.POST))
        if leaves:
            review = reviewing.leave_as_is(desk.user, review_of(desk), version=given["version"])
        else:
            review = reviewing.look_again(desk.user, review_of(desk), version=given["version"], tab=given["tab"])
    except InputRefused as refusal:
        return refused(desk, refusal)
    return after_saving(desk, review, leads_on=leaves)


def review_of(desk: Desk) -> Review:
    mine = Review.objects.select_related("rater").filter(rater__user=desk.user, rubric_version=desk.rubric)
    review = get_object_or_404(mine, comparison=desk.comparison)
    review.comparison, review.rubric_version = desk.comparison, desk.rubric
    return review


def entered_at(desk: Desk, form: StepForm) -> dict[str, Any]:
    """What a step says, if its page asked what is asked now."""
    form.is_valid()
    if form.cleaned_data.get("rubric") not in (None, desk.rubric.pk):
        raise InputRefused(RUBRIC_CHANGED)
    return entered(form)


def entered(form: forms.Form) -> dict[str, Any]:
    """The fields of a step, or its first fault in words."""
    if form.is_valid():
        return form.cleaned_data
    name, faults = next(iter(form.errors.items()))
    said = form.fields[name].label or name.replace("_", " ")
    raise InputRefused(f"Nothing was stored: {said}: {faults[0]}")


def after_saving(desk: Desk, review: Review, *, leads_on: bool) -> HttpResponse:
    """On to the next, or the same comparison again, whose panel alone has changed."""
    if leads_on and goes_ahead(desk.request):
        result = to_result(desk.request, desk.evaluation, review.rater)
        return stamped(result or HttpResponse(status=204), review)
    if leads_on:
        return go_on(desk.request, desk.evaluation, desk.rubric) or redirect("review", desk.evaluation.slug)
    return shown(desk, PANEL) if is_fragment(desk.request) else redirect(desk.address)


def refused(
    desk: Desk, refusal: InputRefused, form: ChoicesForm | None = None, stage: str | None = None
) -> HttpResponse:
    """The page as it is stored now, the reason, and what was entered.

    That stands in its fields where it can still be saved from them, else beside what is stored.
    """
    sheet = sheet_of(desk)
    context: dict[str, Any] = {"refusal": str(refusal)}
    kept = form.entered() if form is not None else None
    if kept is not None and sheet.stage not in ("choose", stage):
        context |= {"versions": versions(sheet, kept), "apply": applied(desk, sheet.stage, kept)}
        kept = None
    elif kept is not None and stage != sheet.stage == "choose":
        context["versions"] = written(sheet, kept)  # there are no fields for it any more
    if not is_fragment(desk.request):
        return shown(desk, sheet=sheet, kept=kept, status=422, **context)
    return retarget(reswap(shown(desk, PANEL, sheet=sheet, kept=kept, status=422, **context), "outerHTML"), "#panel")


def applied(desk: Desk, stage: str, fields: Fields) -> dict[str, Any]:
    """The one step that puts what was entered in the place of what is stored: as final choices, or after an undo."""
    confirms = stage == "confirm"
    step = "review_confirm" if confirms else "review_undo"
    return {
        "address": reverse(step, args=[desk.evaluation.slug, desk.comparison.pk]),
        "confirms": confirms,
        "fields": [(name, value) for name, value in fields.items() if value],
    }
