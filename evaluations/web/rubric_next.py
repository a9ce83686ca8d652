"""Write a rubric's next version."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from evaluations.domain import CURRENT_LAYOUT, RubricKind, RubricSpec
from evaluations.forms.rubric_next import Editor
from evaluations.models import User
from evaluations.services.preparing.preparing import current_builtin, next_version
from evaluations.services.reviewing.overseeing import ending_with_rubric
from evaluations.web import editing
from evaluations.web.rubric import rubric_to_continue

TEMPLATE = "rubric_next/rubric_next.html"


@require_http_methods(["GET", "HEAD", "POST"])
def rubric_next(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The form; a POST with a ``step`` changes its lists or looks at the prompt, any other writes the version.

    ``?text=builtin`` begins with the current words of a built-in rubric instead of those of the latest version.
    """
    user = cast(User, request.user)
    rubric = rubric_to_continue(user, slug, pk)
    latest = rubric.versions.order_by("-number")[0]
    action = reverse("rubric_next", args=[slug, pk])
    context = {
        "evaluation": rubric.evaluation,
        "rubric": rubric,
        "action": action,
        "ending": ending_with_rubric(rubric.evaluation),
        "changes_layout": latest.layout != CURRENT_LAYOUT and not latest.placeholders,
    }

    def write(spec: RubricSpec, editor: Editor) -> str:
        for_reviews = editor.is_pairwise and editor.version.cleaned_data["for_reviews"]
        version = next_version(rubric, spec, user=user, for_reviews=for_reviews)
        messages.success(request, f"Version {version.number} is written. Make a judge with it to have it answered.")
        return f"{reverse('rubric', args=[slug, pk])}?version={version.number}"

    if request.method != "POST":
        current = current_builtin(latest) if request.GET.get("text") == "builtin" else None
        return editing.begun(request, TEMPLATE, context, current or latest.spec())
    return editing.answered(request, TEMPLATE, context, RubricKind(rubric.kind), write)
