"""What the command palette of every page reads."""

from django.http import JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from evaluations.models.evaluations import Evaluation
from evaluations.web.requests import AuthenticatedRequest

MAX_EVALUATIONS = 200


@require_safe
def evaluation_names(request: AuthenticatedRequest) -> JsonResponse:
    """The newest evaluations of this person that are not archived, with their addresses."""
    evaluations = Evaluation.objects.of(request.user).current().order_by("-pk").only("name", "slug")[:MAX_EVALUATIONS]
    rows = [{"name": one.name, "url": reverse("evaluation", args=[one.slug])} for one in evaluations]
    return JsonResponse(rows, safe=False)
