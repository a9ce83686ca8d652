"""One rubric: its versions, word for word, and who uses them."""

from typing import cast

from django.db.models import Count, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.domain import RubricOrigin
from evaluations.forms.examples import examples_shown
from evaluations.models import Rubric, RubricVersion, User
from evaluations.services.judging.judging import left_out_warnings
from evaluations.services.preparing.preparing import current_builtin


@require_safe
def rubric(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    evaluation = access.evaluation_for(cast(User, request.user), slug)
    found = get_object_or_404(Rubric, evaluation=evaluation, pk=pk)
    versions = list(versions_of(found))
    version = chosen(versions, request.GET.get("version", ""))
    spec = version.spec()
    answer, _, pattern = spec.answer_format.partition(":")
    context = {
        "page": "rubrics",
        "evaluation": evaluation,
        "rubric": found,
        "versions": versions,
        "version": version,
        "spec": spec,
        "answer": answer,
        "pattern": pattern,
        "examples": examples_shown(spec),
        "judges": list(version.judges.current().order_by("name")),
        "can_be_continued": can_be_continued(found),
        "warnings": left_out_warnings(evaluation, spec),
        "has_newer_text": version == versions[0] and current_builtin(version) is not None,
    }
    return render(request, "rubric/rubric.html", context)


def versions_of(rubric: Rubric) -> QuerySet[RubricVersion]:
    counted: QuerySet[RubricVersion] = rubric.versions.annotate(judges_made=Count("judges"))
    return counted.order_by("-number")


def chosen(versions: list[RubricVersion], number: str) -> RubricVersion:
    """The version of that number; without one the newest."""
    for version in versions:
        if not number or str(version.number) == number:
            return version
    raise Http404


def can_be_continued(rubric: Rubric) -> bool:
    """An imported rubric only names what a file held."""
    return rubric.origin != RubricOrigin.IMPORTED


def rubric_to_continue(user: User, slug: str, pk: int) -> Rubric:
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    found = get_object_or_404(Rubric.objects.select_related("evaluation"), evaluation=evaluation, pk=pk)
    if not can_be_continued(found):
        raise Http404
    return found
