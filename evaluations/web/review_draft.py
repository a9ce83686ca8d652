"""What a person entered on the review page, kept as they enter it; and the panel as it stands now."""

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from evaluations.domain import InputRefused
from evaluations.forms.review import ChoicesForm
from evaluations.forms.review_draft import DraftForm
from evaluations.models import Review
from evaluations.services.reviewing import keeping, reviewing
from evaluations.web.desk import Desk, at_desk, shown
from evaluations.web.review_steps import entered, entered_at


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def review_draft(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    return kept(request, slug, pk) if request.method == "POST" else panel(request, slug, pk)


@at_desk
def panel(desk: Desk) -> HttpResponse:
    """The panel alone: what a page needs that was made before the last step was stored."""
    return shown(desk, "review/_panel.html")


@at_desk
def kept(desk: Desk) -> HttpResponse:
    try:
        given = entered_at(desk, DraftForm(desk.request.POST))
        fields = filled(desk)
        review = reviewing.review_for(desk.user, desk.comparison)
        review = keeping.keep(
            review,
            version=given["version"],
            fields=fields,
            number=given["number"],
            tab=given["tab"],
            active_ms=given["active_ms"],
        )
    except keeping.DraftedElsewhere as other:
        return JsonResponse({"message": str(other), **as_kept(other.review)}, status=409)
    except InputRefused as refusal:
        return JsonResponse({"message": str(refusal)}, status=422)
    return JsonResponse(as_kept(review))


def filled(desk: Desk) -> dict[str, str]:
    """The fields of the choice panel in which something stands, and no others."""
    form = ChoicesForm(desk.spec, desk.request.POST)
    entered(form)
    return {name: value for name, value in form.entered().items() if value}


def as_kept(review: Review) -> dict[str, Any]:
    draft = keeping.draft_of(review)
    return {
        "number": review.draft_number,
        "fields": draft.fields if draft else {},
        "at": f"{timezone.localtime(draft.kept_at):%H:%M}" if draft else "",
    }
