"""One round: its comparisons, how each was picked, who has reviewed it; people, and whether it is open."""

from collections.abc import Sequence
from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.forms.people_chosen import PeopleForm
from evaluations.models import Round, User
from evaluations.services.reviewing.assigning import close_round
from evaluations.services.reviewing.extending import add_people, reopen_round
from evaluations.services.reviewing.overseeing import progress_of, said_on, work_in
from evaluations.web.paging import page_of
from evaluations.web.refusing import told_if_refused
from evaluations.web.round_new import reviewers

# Lists show neither the messages of a query nor those of its responses: they are left unread.
LISTED = ("round", "place", "picked_by", "probability", "item__comparison__query__text", "item__comparison__evaluation")


@require_safe
def round_page(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = cast(User, request.user)
    made = round_for(user, slug, pk, Action.SEE_ALL)
    picks = made.picks.select_related("round", "item__comparison__query").only(*LISTED)
    page = page_of(request, picks)
    context = {
        "page": "rounds",
        "evaluation": made.evaluation,
        "round": made,
        "progress": progress_of([made])[made.pk],
        "work": work_in(made),
        "page_of_rows": page,
        "rows": said_on(page.rows),
        "people": reviewers(made.evaluation) if access.may(user, Action.MANAGE, made.evaluation) else [],
    }
    return render(request, "round/round.html", context)


@require_POST
def round_people(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Give the round's comparisons to these people by name."""
    user = cast(User, request.user)
    made = round_for(user, slug, pk, Action.MANAGE)
    form = PeopleForm(request.POST, people=reviewers(made.evaluation))
    with told_if_refused(request):
        people = form.chosen()
        messages.success(request, told(add_people(made, people, user), people))
    return redirect("round", slug, pk)


@require_POST
def round_close(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = cast(User, request.user)
    made = round_for(user, slug, pk, Action.MANAGE)
    with told_if_refused(request):
        close_round(made, user)
        messages.success(request, f"“{made.name}” is closed: nobody is led to it any more. Every review stays.")
    return redirect("round", slug, pk)


@require_POST
def round_open(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = cast(User, request.user)
    made = round_for(user, slug, pk, Action.MANAGE)
    with told_if_refused(request):
        reopen_round(made, user)
        messages.success(request, f"“{made.name}” is open again.")
    return redirect("round", slug, pk)


def round_for(user: User, slug: str, pk: int, action: Action) -> Round:
    evaluation = access.evaluation_for(user, slug, action)
    made = get_object_or_404(
        Round.objects.select_related("user", "rubric_version__rubric"), evaluation=evaluation, pk=pk
    )
    made.evaluation = evaluation
    return made


def told(given: int, people: Sequence[User]) -> str:
    """Whom comparisons were given to, and how many."""
    names = ", ".join(map(str, people))
    return f"{given} comparison{'' if given == 1 else 's'} given to {names}: they meet them next."
