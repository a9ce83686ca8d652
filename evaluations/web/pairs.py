"""Pairs of responses that are here: how many each way would make, and making them."""

from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused
from evaluations.forms.make_pairs import PairsForm
from evaluations.models import Evaluation, User
from evaluations.services.importing.counting import CONFIRMED_ABOVE
from evaluations.services.importing.coupling import count_ways, couple
from evaluations.tasks import nudge, store_import


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def pairs(request: HttpRequest, slug: str) -> HttpResponse:
    evaluation = access.evaluation_for(cast(User, request.user), slug, Action.MANAGE)
    form = PairsForm(evaluation, request.POST or None)
    wants = request.method == "POST" and request.POST.get("do") == "make"
    if wants and form.is_valid():
        try:
            way = form.ways()[form.cleaned_data["pair"]]
            importing = couple(evaluation, way, confirmed=form.cleaned_data["confirmed"], user=cast(User, request.user))
        except InputRefused as refused:
            form.add_error(None, str(refused))
        else:
            nudge(store_import, importing.pk)
            return redirect("import", slug, importing.pk)
    return shown(request, evaluation, form, status=422 if wants else 200)


def shown(request: HttpRequest, evaluation: Evaluation, form: PairsForm, status: int) -> HttpResponse:
    ways = count_ways(evaluation, form.ways())
    labels = dict(form.fields["pair"].choices)  # type: ignore[attr-defined]
    context = {
        "page": "imports",
        "evaluation": evaluation,
        "form": form,
        "counts": [(labels[way], as_told, ways.counted[way]) for way, as_told in ways.told.items()],
        "ways": ways,
        "is_all_made": ways.is_whole and not any(ways.counted.values()),
        "asks": not ways.is_whole or max(ways.counted.values(), default=0) > CONFIRMED_ABOVE,
    }
    is_fragment = request.htmx and request.method == "POST"  # type: ignore[attr-defined]
    return render(request, "pairs/_counts.html" if is_fragment else "pairs/pairs.html", context, status=status)
