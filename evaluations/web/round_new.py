"""Make a round: which comparisons, how many of them at random, and who reviews them."""

from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from evaluations import access
from evaluations.access import Action
from evaluations.access import reviewers as reviewers
from evaluations.domain import DRAWN, InputRefused
from evaluations.forms.round_new import MOST, RoundForm
from evaluations.models import Evaluation, Round, User
from evaluations.services.reviewing.assigning import make_round, preview


@require_http_methods(["GET", "HEAD", "POST"])
def round_new(request: HttpRequest, slug: str) -> HttpResponse:
    """The form with what it would make; with ``?strategy=…`` and the other fields, what those would."""
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    given = request.POST if request.method == "POST" else request.GET
    form = RoundForm(given or None, evaluation=evaluation, people=reviewers(evaluation), name=free_name(evaluation))
    if request.method == "POST" and form.is_valid() and (made := made_by(form, evaluation, user)):
        messages.success(request, f"“{made.name}” is open.")
        return redirect("round", slug, made.pk)
    return shown(request, evaluation, form, status=422 if request.method == "POST" else 200)


def made_by(form: RoundForm, evaluation: Evaluation, user: User) -> Round | None:
    try:
        return make_round(evaluation, user=user, **form.options())
    except InputRefused as refused:
        form.add_error(None, str(refused))
        return None


def shown(request: HttpRequest, evaluation: Evaluation, form: RoundForm, status: int = 200) -> HttpResponse:
    context = {"page": "rounds", "evaluation": evaluation, "form": form, **previewed(evaluation, form)}
    only_preview = request.htmx and request.method == "GET"  # type: ignore[attr-defined]
    template = "round_new/_preview.html" if only_preview else "round_new/round_new.html"
    return render(request, template, context, status=status)


def previewed(evaluation: Evaluation, form: RoundForm) -> dict[str, Any]:
    """What would be picked, or in one sentence why nothing can be."""
    options = form.picking()
    if options is None:
        return {"problem": "This cannot be previewed yet: look at the fields above."}
    try:
        ahead = preview(evaluation, **options)
    except InputRefused as refused:
        return {"problem": str(refused)}
    total = ahead.at_random + ahead.by_strategy
    is_drawn = options["strategy"] in DRAWN
    is_short = is_drawn and total < options["size"] < MOST
    return {"preview": ahead, "total": total, "is_drawn": is_drawn, "is_short": is_short}


def free_name(evaluation: Evaluation) -> str:
    """“Round 3” where there are two; the person may call it anything."""
    taken = set(Round.objects.filter(evaluation=evaluation).values_list("name", flat=True))
    return next(name for number in range(1, len(taken) + 2) if (name := f"Round {number}") not in taken)
