"""The review page: one comparison, two responses side by side, a choice for every aspect."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, cast

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect, push_url, reswap, retarget

from evaluations import access
from evaluations.access import Action
from evaluations.domain import AspectSpec, Choice, InputRefused, ReviewState
from evaluations.forms.review import ChoicesForm, SkipForm, StepForm
from evaluations.models import Comparison, Evaluation, Review, RubricVersion, User
from evaluations.services.reviewing import reviewing
from evaluations.services.reviewing.presenting import Line, Sheet, sheet_for
from evaluations.services.reviewing.queueing import earlier_review, last_finished, next_comparison, progress
from evaluations.services.reviewing.revealing import JudgeChoice

REOPENED = "reopened review"  # in the session: what “undo” took away, to be kept or changed
LABELS: Mapping[Choice, str] = {Choice.A: "A", Choice.TIE: "Tie", Choice.BOTH_BAD: "Both bad", Choice.B: "B"}


@dataclass(frozen=True)
class Desk:
    """One person before one comparison."""

    request: HttpRequest
    user: User
    evaluation: Evaluation
    rubric: RubricVersion
    comparison: Comparison

    @property
    def address(self) -> str:
        return reverse("review_comparison", args=[self.evaluation.slug, self.comparison.pk])

    @property
    def aspects(self) -> tuple[AspectSpec, ...]:
        return self.rubric.spec().aspects

    def seen_verdicts(self) -> bool:
        return access.has_seen_verdicts(self.user, self.comparison)


@dataclass(frozen=True)
class Entered:
    """What stands in the fields of the page where that is not what is stored."""

    choices: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    note: str | None = None


@dataclass(frozen=True)
class Option:
    value: Choice
    label: str
    is_chosen: bool
    is_yours: bool
    is_judges: bool


@dataclass(frozen=True)
class Row:
    """One aspect of the choice panel."""

    line: Line
    options: list[Option]
    note: str
    first: str
    final: str
    judge: str
    consistency: str


def at_desk(view: Callable[[Desk], HttpResponse]) -> Callable[[HttpRequest, str, int], HttpResponse]:
    """Hand the view its comparison; where nothing can be reviewed, the way leads to the page that says why."""

    @wraps(view)
    def guarded(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
        try:
            return view(desk_for(request, slug, pk))
        except InputRefused:
            return redirect("review", slug)

    return guarded


def desk_for(request: HttpRequest, slug: str, pk: int) -> Desk:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.REVIEW)
    with_texts = Comparison.objects.select_related("query", "response_a", "response_b")
    comparison = get_object_or_404(with_texts, evaluation=evaluation, pk=pk)
    comparison.evaluation = evaluation
    return Desk(request, user, evaluation, reviewing.rubric_in_force(evaluation), comparison)


@never_cache
@require_safe
def review(request: HttpRequest, slug: str) -> HttpResponse:
    """The way to the next comparison, or a page that says why there is none."""
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.REVIEW)
    try:
        reviewing.rubric_in_force(evaluation)
    except InputRefused as refusal:
        return nothing(request, evaluation, str(refusal))
    return go_on(request, evaluation) or nothing(request, evaluation)


@never_cache
@require_safe
@at_desk
def review_comparison(desk: Desk) -> HttpResponse:
    return shown(desk)


@require_POST
@at_desk
def review_save(desk: Desk) -> HttpResponse:
    """The first choices: then the judge's appear, or the next comparison where there are none."""
    form = ChoicesForm(desk.aspects, desk.request.POST)
    try:
        given = entered(form)
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
    return after_saving(desk, is_finished=saved.state == ReviewState.FINAL)


@require_POST
@at_desk
def review_confirm(desk: Desk) -> HttpResponse:
    """The final choices: confirmed or changed in sight of the judge's."""
    form = ChoicesForm(desk.aspects, desk.request.POST)
    try:
        given = entered(form)
        reviewing.save_final(
            desk.user,
            desk.comparison,
            choices=form.choices(),
            notes=form.notes(),
            version=given["version"],
            note=given["note"],
            active_ms=given["active_ms"],
        )
    except InputRefused as refusal:
        return refused(desk, refusal, form, stage="confirm")
    return after_saving(desk, is_finished=desk.request.POST.get("then") == "next")


@require_POST
@at_desk
def review_skip(desk: Desk) -> HttpResponse:
    try:
        reviewing.skip(desk.user, desk.comparison, **entered(SkipForm(desk.request.POST)))
    except InputRefused as refusal:
        return refused(desk, refusal)
    return after_saving(desk, is_finished=True)


@require_POST
@at_desk
def review_undo(desk: Desk) -> HttpResponse:
    """Back to that comparison, with what was chosen still in its fields."""
    mine = Review.objects.select_related("rater").filter(rater__user=desk.user, rubric_version=desk.rubric)
    last = get_object_or_404(mine, comparison=desk.comparison)
    last.comparison = desk.comparison
    try:
        version = entered(StepForm(desk.request.POST))["version"]
        taken = reviewing.undo(desk.user, last, version=version, seen_verdicts=desk.seen_verdicts())
    except InputRefused as refusal:
        return refused(desk, refusal)
    desk.request.session[REOPENED] = {
        "comparison": desk.comparison.pk,
        "choices": taken.choices,
        "notes": taken.notes,
    }
    return push_url(shown(desk), desk.address) if is_fragment(desk.request) else redirect(desk.address)


def entered(form: forms.Form) -> dict[str, Any]:
    """The fields of a step, or its first fault in words."""
    if form.is_valid():
        return form.cleaned_data
    name, faults = next(iter(form.errors.items()))
    raise InputRefused(f"Nothing was stored: {name.replace('_', ' ')}: {faults[0]}")


def after_saving(desk: Desk, *, is_finished: bool) -> HttpResponse:
    """On to the next, or the same comparison again, whose panel alone has changed."""
    if desk.request.session.get(REOPENED):
        del desk.request.session[REOPENED]
    if is_finished:
        return go_on(desk.request, desk.evaluation) or redirect("review", desk.evaluation.slug)
    return shown(desk, "review/_panel.html") if is_fragment(desk.request) else redirect(desk.address)


def go_on(request: HttpRequest, evaluation: Evaluation) -> HttpResponse | None:
    """The next comparison, as a page or in the place of this one; None where none is left."""
    user = cast(User, request.user)
    pk = next_comparison(evaluation, reviewing.rater_of(user, evaluation))
    if pk is None:
        return None
    if not is_fragment(request):
        return redirect("review_comparison", evaluation.slug, pk)
    desk = desk_for(request, evaluation.slug, pk)
    answer = push_url(shown(desk), desk.address)
    return reswap(retarget(answer, "#workbench"), cast(Any, "outerHTML show:window:top"))


def nothing(request: HttpRequest, evaluation: Evaluation, reason: str = "") -> HttpResponse:
    if is_fragment(request):
        return HttpResponseClientRedirect(request.path)
    rater = reviewing.rater_of(cast(User, request.user), evaluation)
    context = {
        "page": "review",
        "evaluation": evaluation,
        "reason": reason,
        "progress": progress(evaluation, rater),
        "earlier": earlier_review(evaluation, rater, None),
    }
    return render(request, "review/nothing.html", context)


def refused(
    desk: Desk, refusal: InputRefused, form: ChoicesForm | None = None, stage: str | None = None
) -> HttpResponse:
    """The page as it is stored now, the reason, and what was entered: in its fields where they are still there."""
    sheet = sheet_of(desk)
    kept, lost = Entered(), ""
    if form is not None and sheet.stage == stage:
        kept = entered_in(form)
    elif form is not None:
        lost = in_words(form, desk.aspects)
    context = {"refusal": str(refusal), "not_stored": lost}
    if not is_fragment(desk.request):
        return shown(desk, sheet=sheet, kept=kept, status=422, **context)
    return retarget(
        reswap(shown(desk, "review/_panel.html", sheet=sheet, kept=kept, status=422, **context), "outerHTML"), "#panel"
    )


def entered_in(form: ChoicesForm) -> Entered:
    choices = {key: form.data.get(f"choice_{key}", "") for key in form.keys}
    notes = {key: form.data.get(f"note_{key}", "") for key in form.keys}
    return Entered(choices, notes, form.data.get("note", ""))


def in_words(form: ChoicesForm, aspects: tuple[AspectSpec, ...]) -> str:
    """Choices that could not be stored, so that the person can read them off."""
    choices = entered_in(form).choices
    return ", ".join(f"{aspect.name} {choices[aspect.key]}" for aspect in aspects if choices[aspect.key])


def shown(
    desk: Desk,
    template: str = "",
    *,
    sheet: Sheet | None = None,
    kept: Entered | None = None,
    status: int = 200,
    **more: str,
) -> HttpResponse:
    """The comparison as a whole page, or as the part of it that is asked for."""
    request, evaluation = desk.request, desk.evaluation
    sheet = sheet or sheet_of(desk)
    fields = kept or reopened(request, sheet)
    rater = reviewing.rater_of(desk.user, evaluation)
    context = {
        "page": "review",
        "evaluation": evaluation,
        "comparison": desk.comparison,
        "query": desk.comparison.query,
        "sheet": sheet,
        "rows": list(rows(sheet, fields)),
        "note": fields.note if fields.note is not None else (sheet.review.note if sheet.review else ""),
        "progress": progress(evaluation, rater),
        "earlier": earlier_review(evaluation, rater, sheet.review),
        "undoable": sheet.review if is_undoable(sheet.review) else None,
        **more,
    }
    if sheet.stage == "choose" and context["undoable"] is None:
        context["undoable"] = last_finished(evaluation, rater)
    template = template or ("review/_workbench.html" if is_fragment(request) else "review/review.html")
    return render(request, template, context, status=status)


def sheet_of(desk: Desk) -> Sheet:
    return sheet_for(desk.user, desk.comparison, desk.rubric, reviewing.rater_of(desk.user, desk.evaluation))


def is_undoable(review: Review | None) -> bool:
    return review is not None and review.state in (ReviewState.FINAL, ReviewState.SKIPPED)


def reopened(request: HttpRequest, sheet: Sheet) -> Entered:
    """What “undo” took away from this comparison, to be saved again or changed."""
    taken = request.session.get(REOPENED)
    if not taken or taken["comparison"] != sheet.comparison.pk or sheet.stage == "done":
        return Entered()
    return Entered(taken["choices"], taken["notes"])


def rows(sheet: Sheet, fields: Entered) -> Iterator[Row]:
    for line in sheet.lines:
        chosen = fields.choices.get(line.asked.key) or line.final or line.first
        judge = line.judge.choice if line.judge else None
        torn = line.judge is not None and line.judge.inconsistent
        yield Row(
            line,
            [
                Option(choice, label_of(line.asked, choice), choice == chosen, choice == line.first, choice == judge)
                for choice in line.asked.choices
            ],
            fields.notes.get(line.asked.key, line.note),
            label_of(line.asked, line.first),
            label_of(line.asked, line.final),
            LABELS[Choice.TIE] if torn else label_of(line.asked, judge),
            consistency(line.judge) if line.judge else "",
        )


def label_of(asked: AspectSpec, choice: Choice | None) -> str:
    """The choice in words. Where “both bad” can be chosen, a tie is two good ones."""
    if choice == Choice.TIE and asked.offers_both_bad:
        return "Both good"
    return LABELS[choice] if choice else ""


def consistency(judge: JudgeChoice) -> str:
    if judge.remark:
        return judge.remark
    if judge.inconsistent:
        return "inconsistent → tie"
    return "both orders agree" if judge.orders > 1 else "asked in one order"


def is_fragment(request: HttpRequest) -> bool:
    """Whether htmx asks for a part of the page; going back in history it asks for all of it."""
    htmx = request.htmx  # type: ignore[attr-defined]
    return bool(htmx) and not htmx.history_restore_request
