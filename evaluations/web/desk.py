"""One person before one comparison: what every step of the review page begins with and answers with."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, cast

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.gzip import gzip_page
from django_htmx.http import HttpResponseClientRedirect, push_url, reswap, retarget

from evaluations import access
from evaluations.access import Action
from evaluations.domain import AspectSpec, InputRefused, ReviewState, RubricSpec
from evaluations.forms.review import REASONS
from evaluations.models import Comparison, Evaluation, Rater, Review, RubricVersion, User
from evaluations.services.reviewing import reviewing
from evaluations.services.reviewing.arranging import texts_for
from evaluations.services.reviewing.calibrating import standing, unseen_result
from evaluations.services.reviewing.contrasting import diffed
from evaluations.services.reviewing.guiding import changed_since_last_review
from evaluations.services.reviewing.keeping import draft_before, draft_of
from evaluations.services.reviewing.marking import spans_of
from evaluations.services.reviewing.presenting import Sheet, sheet_for
from evaluations.services.reviewing.queueing import earlier_review, next_comparison, progress
from evaluations.services.reviewing.typesetting import html_of, texts_of
from evaluations.web.choice_panel import Fields, rows

PANEL = "review/_panel.html"  # the part of the page that a step changes
PERSON = "X-Person"  # the header in which the page says whose it is


@dataclass(frozen=True)
class Desk:
    """One person before one comparison. ``seated``: this person as a rater, if they were one when they came."""

    request: HttpRequest
    user: User
    evaluation: Evaluation
    rubric: RubricVersion
    spec: RubricSpec
    comparison: Comparison
    seated: Rater | None

    @property
    def address(self) -> str:
        return reverse("review_comparison", args=[self.evaluation.slug, self.comparison.pk])

    @property
    def aspects(self) -> tuple[AspectSpec, ...]:
        return self.spec.aspects

    @property
    def rater(self) -> Rater | None:
        """A first step has made one of who was none before."""
        return self.seated or reviewing.rater_of(self.user, self.evaluation)

    def seen_verdicts(self) -> bool:
        return access.has_seen_verdicts(self.user, self.comparison)


def at_desk(view: Callable[[Desk], HttpResponse]) -> Callable[[HttpRequest, str, int], HttpResponse]:
    """Hand the view its comparison; where nothing can be reviewed, say why."""

    @gzip_page  # texts make most of the page; Django pads what it compresses, and tokens differ with every answer
    @wraps(view)
    def guarded(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
        if is_of_someone_else(request):
            return HttpResponse("Somebody else is signed in now.", status=409, headers={PERSON: "another"})
        try:
            desk = desk_for(request, slug, pk)
        except InputRefused as refusal:
            return closed(request, slug, refusal)
        return view(desk)

    return guarded


def closed(request: HttpRequest, slug: str, refusal: InputRefused) -> HttpResponse:
    """Nothing can be reviewed here now. A step is refused, so that nobody takes it for stored."""
    if request.method != "POST":
        return redirect("review", slug)
    words = f"{refusal} Nothing was stored."
    if is_fragment(request):
        return JsonResponse({"message": words}, status=422)
    evaluation = access.evaluation_for(cast(User, request.user), slug, Action.REVIEW)
    context = {"page": "review", "evaluation": evaluation, "reason": words}
    return render(request, "review/nothing.html", context, status=422)


def is_of_someone_else(request: HttpRequest) -> bool:
    """Whether the page that asks was made for another person: what they entered is not this one's."""
    return request.headers.get(PERSON, str(request.user.pk)) != str(request.user.pk)


def desk_for(request: HttpRequest, slug: str, pk: int) -> Desk:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.REVIEW)
    rubric = reviewing.rubric_in_force(evaluation)
    return desk_with(request, evaluation, rubric, reviewing.rater_of(user, evaluation), pk)


def desk_with(
    request: HttpRequest, evaluation: Evaluation, rubric: RubricVersion, seated: Rater | None, pk: int
) -> Desk:
    """The same for a person who was let in already: the next comparison asks for none of this again."""
    with_texts = Comparison.objects.select_related("query", "response_a", "response_b")
    comparison = get_object_or_404(with_texts, evaluation=evaluation, pk=pk)
    comparison.evaluation = evaluation
    return Desk(request, cast(User, request.user), evaluation, rubric, rubric.spec(), comparison, seated)


def go_on(request: HttpRequest, evaluation: Evaluation, rubric: RubricVersion) -> HttpResponse | None:
    """The next comparison, as a page or in the place of this one; None where none is left."""
    rater = reviewing.rater_for(cast(User, request.user), evaluation)
    if result := to_result(request, evaluation, rater):
        return result
    pk = next_comparison(evaluation, rater)
    if pk is None:
        return None
    if not is_fragment(request):
        return redirect("review_comparison", evaluation.slug, pk)
    desk = desk_with(request, evaluation, rubric, rater, pk)
    answer = push_url(shown(desk), desk.address)
    return reswap(retarget(answer, "#workbench"), cast(Any, "outerHTML show:window:top"))


def to_result(request: HttpRequest, evaluation: Evaluation, rater: Rater) -> HttpResponse | None:
    """Who has just finished a calibration round sees how it went before anything else."""
    calibrated = unseen_result(evaluation, rater)
    if calibrated is None:
        return None
    address = reverse("calibration", args=[evaluation.slug, calibrated.pk])
    return HttpResponseClientRedirect(address) if is_fragment(request) else redirect(address)


def shown(
    desk: Desk,
    template: str = "",
    *,
    sheet: Sheet | None = None,
    kept: Fields | None = None,
    status: int = 200,
    **more: Any,
) -> HttpResponse:
    """The comparison as a whole page, or as the part of it that is asked for.

    ``kept``: what was sent and could not be stored, for its fields.
    """
    sheet = sheet or sheet_of(desk)
    template = template or ("review/_workbench.html" if is_fragment(desk.request) else "review/review.html")
    html = html_of(texts_on(sheet, template))
    context = {**context_of(desk, sheet, kept), "html": html}
    if template != PANEL:
        context |= beside_the_panel(desk, sheet, html)
    return stamped(render(desk.request, template, {**context, **more}, status=status), sheet.review)


def context_of(desk: Desk, sheet: Sheet, kept: Fields | None) -> dict[str, Any]:
    review, rater = sheet.review, desk.rater
    before = None if review else draft_before(rater, desk.comparison, desk.rubric)
    draft = None if sheet.stage == "done" else draft_of(review) or before
    fields = kept if kept is not None else (draft.fields if draft else {})
    earlier = earlier_review(desk.evaluation, rater, review)
    undoable = review if is_undoable(review) else (earlier if sheet.stage == "choose" else None)
    return {
        "page": "review",
        "evaluation": desk.evaluation,
        "comparison": desk.comparison,
        "rubric": desk.rubric,
        "query": desk.comparison.query,
        "sheet": sheet,
        "rows": list(rows(sheet, fields)),
        "reasons": REASONS,
        "note": fields.get("note", review.note if review else ""),
        "draft": draft,
        "is_from_before": before is not None,
        "progress": progress(desk.evaluation, rater),
        "earlier": earlier,
        "undoable": undoable,
    }


def beside_the_panel(desk: Desk, sheet: Sheet, html: Mapping[str, SafeString]) -> dict[str, Any]:
    """What is read, and what this person has marked in it."""
    return {
        "calibration": standing(desk.evaluation, desk.rater, desk.comparison),
        "guidelines_changed": changed_since_last_review(desk.evaluation, desk.rater),
        "texts": texts_for(sheet, html, spans_of(desk.comparison, desk.rater) if sheet.review else []),
        "diff": diffed(sheet) if desk.request.GET.get("diff") else None,
        "aspects": desk.aspects,
    }


def texts_on(sheet: Sheet, template: str) -> Iterator[str]:
    """What is shown as Markdown: on the panel alone only what the judge wrote."""
    if template != PANEL:
        yield from texts_of(sheet.comparison)
        yield sheet.comparison.evaluation.guidelines
    if sheet.judge:
        yield from (rationale.text for rationale in sheet.judge.rationales)


def sheet_of(desk: Desk) -> Sheet:
    return sheet_for(desk.user, desk.comparison, desk.rubric, desk.rater, desk.spec)


def is_undoable(review: Review | None) -> bool:
    return review is not None and review.state in (ReviewState.FINAL, ReviewState.SKIPPED)


def stamped(answer: HttpResponse, review: Review | None) -> HttpResponse:
    """The state and version of the review, for a script that does not read the page."""
    answer["X-Review-State"] = review.state if review else ""
    answer["X-Review-Version"] = str(review.version if review else 0)
    return answer


def is_fragment(request: HttpRequest) -> bool:
    """Whether a script asks for a part of the page; going back in history htmx asks for all of it."""
    htmx = request.htmx  # type: ignore[attr-defined]
    return (bool(htmx) and not htmx.history_restore_request) or goes_ahead(request)


def goes_ahead(request: HttpRequest) -> bool:
    """Whether the script has the next comparison already, and only asks how the step went."""
    return request.POST.get("then") == "ahead"
