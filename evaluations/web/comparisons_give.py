"""Give comparisons to people by name, chosen in the list of comparisons."""

from collections.abc import Sequence
from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused
from evaluations.forms.people_chosen import PeopleForm
from evaluations.models import Comparison, User
from evaluations.services.reviewing.assigning import Given, assign
from evaluations.web.refusing import told_if_refused
from evaluations.web.round import told
from evaluations.web.round_new import reviewers

MOST = 500


@require_POST
def comparisons_give(request: HttpRequest, slug: str) -> HttpResponse:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    form = PeopleForm(request.POST, people=reviewers(evaluation))
    numbers = [given for given in request.POST.getlist("comparison")[:MOST] if given.isdecimal() and len(given) < 19]
    comparisons = list(Comparison.objects.filter(evaluation=evaluation, pk__in=numbers))
    with told_if_refused(request):
        people = form.chosen()
        if not comparisons:
            raise InputRefused("Choose at least one comparison in the list.")
        given = assign(evaluation, comparisons, people, user)
        messages.add_message(request, messages.SUCCESS if given.number else messages.WARNING, said(given, people))
    return redirect(reverse("comparisons", args=[slug], query=request.GET))


def said(given: Given, people: Sequence[User]) -> str:
    if given.number:
        left_out = f" What they have reviewed already ({given.reviewed}) is left out." if given.reviewed else ""
        return told(given.number, people) + left_out
    names = ", ".join(map(str, people))
    done = "reviewed these already" if given.reviewed else "been given these already"
    both = " or been given them" if given.reviewed and given.waiting else ""
    return f"Nothing was given: {names} {'has' if len(people) == 1 else 'have'} {done}{both}."
