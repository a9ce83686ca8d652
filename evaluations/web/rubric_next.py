"""Write a rubric's next version."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from evaluations.domain import InputRefused, RubricSpec
from evaluations.forms.rubric_next import (
    AspectFormSet,
    Aspects,
    VersionForm,
    aspect_values,
    rearranged,
    spec_of,
    version_values,
)
from evaluations.models import Rubric, RubricVersion, User
from evaluations.services.preparing.preparing import next_version
from evaluations.web.rubric import rubric_to_continue


@require_http_methods(["GET", "HEAD", "POST"])
def rubric_next(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The form; a POST with a ``step`` changes its list of aspects, any other POST writes the version."""
    rubric = rubric_to_continue(cast(User, request.user), slug, pk)
    latest = rubric.versions.order_by("-number")[0].spec()
    if request.method != "POST":
        values = VersionForm(initial=version_values(latest))
        return shown(request, rubric, values, AspectFormSet(initial=aspect_values(latest)))
    if "step" in request.POST:
        values = VersionForm(initial={name: request.POST.get(name, "") for name in VersionForm.base_fields})
        return shown(request, rubric, values, AspectFormSet(initial=rearranged(request.POST, request.POST["step"])))
    form, aspects = VersionForm(request.POST), AspectFormSet(request.POST)
    if form.is_valid() & aspects.is_valid() and (version := written(request, rubric, form, aspects, latest)):
        messages.success(request, f"Version {version.number} is written. Make a judge with it to have it answered.")
        return redirect(f"{reverse('rubric', args=[slug, pk])}?version={version.number}")
    return shown(request, rubric, form, aspects, status=422)


def written(
    request: HttpRequest, rubric: Rubric, form: VersionForm, aspects: Aspects, latest: RubricSpec
) -> RubricVersion | None:
    spec = spec_of(form, aspects, latest.few_shot)
    try:
        for_reviews = form.cleaned_data["for_reviews"]
        return next_version(rubric, spec, user=cast(User, request.user), for_reviews=for_reviews)
    except InputRefused as refused:
        form.add_error(None, str(refused))
        return None


def shown(request: HttpRequest, rubric: Rubric, form: VersionForm, aspects: Aspects, status: int = 200) -> HttpResponse:
    context = {
        "page": "rubrics",
        "evaluation": rubric.evaluation,
        "rubric": rubric,
        "form": form,
        "aspects": aspects,
    }
    return render(request, "rubric_next/rubric_next.html", context, status=status)
