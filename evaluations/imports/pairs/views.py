"""The page that pairs stored responses."""

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from evaluations.access import Action, require_evaluation
from evaluations.comparisons.pairing.selectors import CONFIRMED_ABOVE
from evaluations.imports.forms import PairsForm
from evaluations.imports.pairs.services import complete_pairing, count_pairing_options, start_pairing
from evaluations.models.evaluations import Evaluation
from evaluations.web.forms import submit_form
from evaluations.web.requests import AuthenticatedRequest


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def pair_new(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    form = PairsForm(evaluation, request.POST or None)
    is_submitted = request.method == "POST" and request.POST.get("do") == "make"
    if is_submitted and form.is_valid():
        cleaned = form.cleaned_data
        pairing = complete_pairing(evaluation, cleaned["pair"], cleaned["baseline"], cleaned["pairs_each"])
        importing = submit_form(
            form, start_pairing, evaluation, pairing, confirmed=cleaned["confirmed"], user=request.user
        )
        if importing is not None:
            return redirect("import", slug, importing.pk)
    return render_pairs(request, evaluation, form, status=422 if is_submitted else 200)


def render_pairs(request: AuthenticatedRequest, evaluation: Evaluation, form: PairsForm, status: int) -> HttpResponse:
    cleaned = form.cleaned_data if form.is_bound and form.is_valid() else {}
    options = count_pairing_options(evaluation, cleaned.get("baseline", ""), cleaned.get("pairs_each"))
    labels = dict(form.fields["pair"].choices)  # type: ignore[attr-defined]
    context = {
        "page": "imports",
        "evaluation": evaluation,
        "form": form,
        "counts": [(labels[pairing.way], pairing, number) for pairing, number in options.counts.items()],
        "options": options,
        "is_all_made": options.is_whole and not any(options.counts.values()),
        "asks": not options.is_whole or max(options.counts.values(), default=0) > CONFIRMED_ABOVE,
    }
    is_fragment = request.htmx and request.method == "POST"
    return render(request, "pairs/_counts.html" if is_fragment else "pairs/pairs.html", context, status=status)
