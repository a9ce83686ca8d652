"""The page that pairs stored responses."""

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from evaluations.access import Action, require_evaluation
from evaluations.comparisons.pairing.selectors import CONFIRMED_ABOVE
from evaluations.domain.errors import InputRefused
from evaluations.imports.pairs.forms import PairsForm
from evaluations.imports.pairs.services import count_pairing_options, start_pairing
from evaluations.models.evaluations import Evaluation
from evaluations.web.requests import AuthenticatedRequest


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def pair_new(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    form = PairsForm(evaluation, request.POST or None)
    wants = request.method == "POST" and request.POST.get("do") == "make"
    if wants and form.is_valid():
        try:
            way = form.ways()[form.cleaned_data["pair"]]
            importing = start_pairing(evaluation, way, confirmed=form.cleaned_data["confirmed"], user=request.user)
        except InputRefused as refused:
            form.add_error(None, str(refused))
        else:
            return redirect("import", slug, importing.pk)
    return render_pairs(request, evaluation, form, status=422 if wants else 200)


def render_pairs(request: AuthenticatedRequest, evaluation: Evaluation, form: PairsForm, status: int) -> HttpResponse:
    ways = count_pairing_options(evaluation, form.ways())
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
    is_fragment = request.htmx and request.method == "POST"
    return render(request, "pairs/_counts.html" if is_fragment else "pairs/pairs.html", context, status=status)
