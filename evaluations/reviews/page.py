"""The responses that all views of the review page share."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, cast

from django import forms
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.gzip import gzip_page
from django_htmx.http import HttpResponseClientRedirect, push_url, reswap, retarget

from evaluations.access import Action, require_evaluation
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import NameReveal, ReviewState, SelectionMethod
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater, get_or_create_rater
from evaluations.models.queues import Queue
from evaluations.models.rubrics import RubricVersion
from evaluations.models.verdicts import Review
from evaluations.rendered_texts import iter_comparison_texts, render_texts
from evaluations.reviews.choice_panel import (
    FieldValues,
    build_panel_rows,
    compare_texts_with_stored,
    compare_with_stored,
)
from evaluations.reviews.context import ReviewContext, build_review_context, load_review_context
from evaluations.reviews.drafts import read_draft, read_draft_of_earlier_version
from evaluations.reviews.forms import REASON_CHOICES, ChoicesForm, StepForm
from evaluations.reviews.queues.calibration import find_unseen_calibration, get_calibration_progress
from evaluations.reviews.queues.next_comparison import reserve_next_comparison
from evaluations.reviews.queues.sql import list_open_queues, select_calibrations
from evaluations.reviews.selectors import (
    describe_minutes_left,
    estimate_minutes_left,
    get_earlier_reviews,
    get_unseen_guidelines_change,
)
from evaluations.reviews.sheet import ReviewSheet
from evaluations.reviews.spans import get_own_spans
from evaluations.reviews.texts import build_review_texts, diff_responses
from evaluations.visibility import are_names_revealed
from evaluations.web.forms import CleanedData
from evaluations.web.requests import AuthenticatedRequest

PANEL_TEMPLATE = "review/_panel.html"  # the part of the page that a step changes

PERSON_HEADER = "X-Person"  # the user for whom the page was rendered


def with_review_page(
    view: Callable[[ReviewContext], HttpResponse],
) -> Callable[[AuthenticatedRequest, str, int], HttpResponse]:
    """Pass the view its review context; explain if nothing can be reviewed."""

    @gzip_page  # texts make most of the page; Django pads what it compresses, and tokens differ with every answer
    @wraps(view)
    def guarded(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
        # The input of another user's page must not be stored here.
        if request.headers.get(PERSON_HEADER, str(request.user.pk)) != str(request.user.pk):
            return HttpResponse("Someone else is signed in now.", status=409, headers={PERSON_HEADER: "another"})
        try:
            page = load_review_context(request, slug, pk, with_texts=request.method != "POST")
        except InputRefused as refusal:
            return refuse_closed_review(request, slug, refusal)
        return view(page)

    return guarded


def refuse_closed_review(request: AuthenticatedRequest, slug: str, refusal: InputRefused) -> HttpResponse:
    """The response when nothing can be reviewed; a step is refused, so that it does not look stored."""
    if request.method != "POST":
        return redirect("review", slug)
    message = f"{refusal} Nothing was stored."
    if is_fragment(request):
        return JsonResponse({"message": message}, status=422)
    evaluation = require_evaluation(request.user, slug, Action.REVIEW)
    context = {"page": "review", "evaluation": evaluation, "reason": message}
    return render(request, "review/nothing.html", context, status=422)


def open_next_comparison(
    request: AuthenticatedRequest, evaluation: Evaluation, rubric: RubricVersion, rater: Rater | None
) -> HttpResponse | None:
    """The next comparison, as a redirect or in place; None if none is left."""
    rater = rater or get_or_create_rater(request.user, evaluation)
    queues = list_open_queues(rubric.pk)
    if result := open_calibration_result(request, evaluation, select_calibrations(queues), rater):
        return result
    pk = reserve_next_comparison(evaluation, rater, queues=queues)
    if pk is None:
        return None
    if not is_fragment(request):
        return redirect("review_comparison", evaluation.slug, pk)
    page = build_review_context(request, evaluation, rubric, rater, pk, open_queues=queues)
    response = push_url(render_comparison(page), page.address)
    return reswap(retarget(response, "#comparison"), cast(Any, "outerHTML show:window:top"))


def open_calibration_result(
    request: AuthenticatedRequest, evaluation: Evaluation, calibrations: Sequence[Queue], rater: Rater
) -> HttpResponse | None:
    """A redirect to the result of the calibration that the rater has just finished; else None."""
    calibrated = find_unseen_calibration(calibrations, rater)
    if calibrated is None:
        return None
    address = reverse("calibration", args=[evaluation.slug, calibrated.pk])
    return HttpResponseClientRedirect(address) if is_fragment(request) else redirect(address)


def render_comparison(
    page: ReviewContext,
    template: str = "",
    *,
    sheet: ReviewSheet | None = None,
    unsaved: FieldValues | None = None,
    status: int = 200,
    **extra_context: Any,
) -> HttpResponse:
    """The comparison as a page, or the fragment that was requested.

    ``unsaved``: input that could not be stored, for the form fields.
    """
    sheet = sheet or page.load_sheet()
    template = template or ("review/_comparison.html" if is_fragment(page.request) else "review/review.html")
    html = render_texts(iter_page_texts(sheet, template))
    context = {**build_panel_context(page, sheet, unsaved), "html": html}
    if template != PANEL_TEMPLATE:
        context |= build_texts_context(page, sheet, html)
    return add_review_headers(render(page.request, template, {**context, **extra_context}, status=status), sheet.review)


def build_panel_context(page: ReviewContext, sheet: ReviewSheet, unsaved: FieldValues | None) -> dict[str, object]:
    review, rater = sheet.review, page.rater
    earlier_draft = None if review else read_draft_of_earlier_version(rater, page.comparison, page.rubric)
    draft = None if sheet.stage == "done" else read_draft(review) or earlier_draft
    fields = unsaved if unsaved is not None else (draft.fields if draft else {})
    recent = get_earlier_reviews(page.evaluation, rater, review)
    earlier = recent[0] if recent else None
    progress = page.get_progress()
    undoable = earlier if sheet.stage == "choose" else None
    if review is not None and review.state in (ReviewState.FINAL, ReviewState.SKIPPED):
        undoable = review
    return {
        "page": "review",
        "evaluation": page.evaluation,
        "comparison": page.comparison,
        "rubric": page.rubric,
        "sheet": sheet,
        "rows": list(build_panel_rows(sheet, fields)),
        "reasons": REASON_CHOICES,
        "names": get_shown_names(page, sheet),
        "note": fields.get("note", review.note if review else ""),
        "draft": draft,
        "is_from_earlier_rubric": earlier_draft is not None,
        "progress": progress,
        "time_left": describe_minutes_left(estimate_minutes_left(recent, progress)),
        "earlier": earlier,
        "undoable": undoable,
    }


def get_shown_names(page: ReviewContext, sheet: ReviewSheet) -> list[tuple[str, str]]:
    """Letters and candidate names, left first, as soon as the evaluation reveals them to this reviewer."""
    review = sheet.review
    if sheet.stage == "choose" or (review is not None and review.selection_method == SelectionMethod.CALIBRATION):
        return []
    if page.evaluation.name_reveal != NameReveal.AFTER_SAVE and sheet.stage != "done":
        return []
    if not are_names_revealed(page.user, page.evaluation):
        return []
    return [(letter, response.candidate.name) for letter, response in sheet.sides]


def build_texts_context(page: ReviewContext, sheet: ReviewSheet, html: Mapping[str, SafeString]) -> dict[str, object]:
    """Template context of the texts and the rater's highlights."""
    return {
        "query": page.comparison.query,
        "calibration": get_calibration_progress(page.calibrations, page.rater, page.comparison),
        "guidelines_changed": get_unseen_guidelines_change(page.evaluation, page.rater),
        "texts": build_review_texts(sheet, html, get_own_spans(page.comparison, page.rater) if sheet.review else []),
        "diff": diff_responses(sheet) if page.request.GET.get("diff") and not page.comparison.is_single else None,
        "aspects": page.aspects,
    }


def iter_page_texts(sheet: ReviewSheet, template: str) -> Iterator[str]:
    """The texts shown as Markdown; for the panel only those of the judge."""
    if template != PANEL_TEMPLATE:
        yield from iter_comparison_texts(sheet.comparison)
        yield sheet.comparison.evaluation.guidelines
    if sheet.judge:
        yield from (rationale.text for rationale in sheet.judge.rationales)


def add_review_headers(response: HttpResponse, review: Review | None) -> HttpResponse:
    """The state and version of the review, for a script that does not read the page."""
    response["X-Review-State"] = review.state if review else ""
    response["X-Review-Version"] = str(review.version if review else 0)
    return response


def is_fragment(request: AuthenticatedRequest) -> bool:
    """Whether a script requests a fragment; on history restore htmx requests the whole page."""
    htmx = request.htmx
    return (bool(htmx) and not htmx.history_restore_request) or has_next_page(request)


def has_next_page(request: AuthenticatedRequest) -> bool:
    """Whether the script has the next comparison already and needs only the status of the step."""
    return request.POST.get("then") == "ahead"


RUBRIC_CHANGED = "The rubric changed while this page was open. Check its questions again. Nothing was stored."


def clean_step(page: ReviewContext, form: StepForm) -> CleanedData:
    """The cleaned step, if its page showed the current rubric version."""
    form.is_valid()
    if form.cleaned_data.get("rubric") not in (None, page.rubric.pk):
        raise InputRefused(RUBRIC_CHANGED)
    return clean_or_refuse_step(form)


def clean_or_refuse_step(form: forms.Form) -> CleanedData:
    """The cleaned fields; InputRefused with the first error in words."""
    if form.is_valid():
        return form.cleaned_data
    name, errors = next(iter(form.errors.items()))
    label = form.fields[name].label or name.replace("_", " ")
    raise InputRefused(f"Nothing was stored: {label}: {errors[0]}")


def respond_after_save(page: ReviewContext, review: Review, *, opens_next: bool) -> HttpResponse:
    """The next comparison, or this one with a new panel."""
    if opens_next and has_next_page(page.request):
        result = open_calibration_result(page.request, page.evaluation, page.calibrations, review.rater)
        return add_review_headers(result or HttpResponse(status=204), review)
    if opens_next:
        opened = open_next_comparison(page.request, page.evaluation, page.rubric, review.rater)
        return opened or redirect("review", page.evaluation.slug)
    if not is_fragment(page.request):
        return redirect(page.address)
    return render_comparison(page, PANEL_TEMPLATE, sheet=page.build_sheet_of(review))


def render_refusal(
    page: ReviewContext, refusal: InputRefused, form: ChoicesForm | None = None, stage: str | None = None
) -> HttpResponse:
    """The page as stored now, with the reason and the input that was refused.

    The input fills the form fields if it can still be saved from them; otherwise it is compared with what is stored.
    """
    sheet = page.load_sheet()
    context: dict[str, Any] = {"refusal": str(refusal)}
    unsaved = form.entered() if form is not None else None
    if unsaved is not None and sheet.stage not in ("choose", stage):
        context |= {
            "versions": compare_with_stored(sheet, unsaved),
            "apply": build_overwrite_step(page, sheet.stage, unsaved),
        }
        unsaved = None
    elif unsaved is not None and stage != sheet.stage == "choose":
        context["versions"] = compare_texts_with_stored(sheet, unsaved)  # the page has no fields for it
    if not is_fragment(page.request):
        return render_comparison(page, sheet=sheet, unsaved=unsaved, status=422, **context)
    panel = render_comparison(page, PANEL_TEMPLATE, sheet=sheet, unsaved=unsaved, status=422, **context)
    return retarget(reswap(panel, "outerHTML"), "#panel")


def build_overwrite_step(page: ReviewContext, stage: str, fields: FieldValues) -> dict[str, object]:
    """The step that replaces the stored answers by those entered: confirm, or undo first."""
    confirms = stage == "confirm"
    step = "review_confirm" if confirms else "review_undo"
    return {
        "address": reverse(step, args=[page.evaluation.slug, page.comparison.pk]),
        "confirms": confirms,
        "fields": [(name, value) for name, value in fields.items() if value],
    }
