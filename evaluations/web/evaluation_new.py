"""Begin an evaluation."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from evaluations.domain import InputRefused
from evaluations.forms.evaluation_new import EvaluationForm
from evaluations.models import Evaluation, User
from evaluations.services.preparing.preparing import create_evaluation


@require_http_methods(["GET", "HEAD", "POST"])
def evaluation_new(request: HttpRequest) -> HttpResponse:
    form = EvaluationForm(request.POST or None)
    if form.is_valid() and (evaluation := created(form, cast(User, request.user))):
        messages.success(request, f"“{evaluation.name}” is ready. Bring in the responses to compare next.")
        return redirect("evaluation", evaluation.slug)
    status = 422 if request.method == "POST" else 200
    return render(request, "evaluation_new/evaluation_new.html", {"page": "evaluations", "form": form}, status=status)


def created(form: EvaluationForm, owner: User) -> Evaluation | None:
    given = form.cleaned_data
    try:
        return create_evaluation(slug=given["slug"], name=given["name"], owner=owner, description=given["description"])
    except InputRefused as refused:
        form.add_error("slug", str(refused))
        return None
