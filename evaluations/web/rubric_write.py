"""Write a rubric's first version, from nothing or from a text that was pasted."""

from dataclasses import replace
from typing import Any, cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from evaluations import access
from evaluations.access import Action
from evaluations.domain import AspectSpec, RubricKind, RubricOrigin, RubricSpec
from evaluations.forms.rubric_new import NameForm
from evaluations.forms.rubric_next import Editor
from evaluations.models import Evaluation, User
from evaluations.services.preparing.preparing import begin_rubric
from evaluations.web import editing

TEMPLATE = "rubric_write/rubric_write.html"


@require_http_methods(["GET", "HEAD", "POST"])
def rubric_write(request: HttpRequest, slug: str) -> HttpResponse:
    """The editor, with the name of the rubric beside it; ``kind`` says what it asks a judge to look at."""
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    kind = kind_of((request.POST if request.method == "POST" else request.GET).get("kind", ""))
    if request.method != "POST":
        return begun(request, evaluation, blank(kind))
    # A step of the editor is no time to ask for the name.
    about = NameForm(initial=request.POST.dict()) if "step" in request.POST else NameForm(request.POST)

    def write(spec: RubricSpec, editor: Editor) -> str:
        version = begin_rubric(
            evaluation, name=about.cleaned_data["name"], spec=spec, origin=RubricOrigin.OWN, user=user
        )
        messages.success(request, f"“{version.rubric}” is written. Make a judge with it to have it answered.")
        return reverse("rubric", args=[slug, version.rubric_id])

    return editing.answered(request, TEMPLATE, context_of(evaluation, kind, about), kind, write, about)


def kind_of(word: str) -> RubricKind:
    """Pairwise where nothing is said."""
    word = word or RubricKind.PAIRWISE
    if word not in set(RubricKind):
        raise Http404
    return RubricKind(word)


def begun(request: HttpRequest, evaluation: Evaluation, spec: RubricSpec, name: str = "") -> HttpResponse:
    about = NameForm(initial={"kind": spec.kind, "name": name})
    return editing.begun(request, TEMPLATE, context_of(evaluation, spec.kind, about), spec)


def context_of(evaluation: Evaluation, kind: RubricKind, about: NameForm) -> dict[str, Any]:
    action = reverse("rubric_write", args=[evaluation.slug])
    return {"evaluation": evaluation, "kind": kind, "about": about, "action": action}


def blank(kind: RubricKind) -> RubricSpec:
    """One aspect to begin with."""
    aspect = AspectSpec("overall", "Overall", "")
    if kind == RubricKind.POINTWISE:
        aspect = replace(aspect, scale_min=1.0, scale_max=5.0, scale_step=1.0)
    return RubricSpec(kind, "", (aspect,), (aspect.key,))
