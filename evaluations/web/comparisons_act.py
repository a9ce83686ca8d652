"""Do something with comparisons of the list: with the chosen ones, or with all that the filter means."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_POST

from evaluations import access
from evaluations.access import Action
from evaluations.domain import Filter, InputRefused
from evaluations.forms.comparisons_act import Act, ActForm, Which
from evaluations.forms.people_chosen import PeopleForm
from evaluations.models import Comparison, Evaluation, Event, User
from evaluations.services.preparing import tagging
from evaluations.services.reporting.browsing import ids_of
from evaluations.services.reviewing.assigning import Given, assign
from evaluations.services.reviewing.extending import make_round_of
from evaluations.tasks import nudge, tag_all
from evaluations.web.comparisons import asked_of, filter_form, keep_asked, numbers_in
from evaluations.web.refusing import told_if_refused
from evaluations.web.round import told
from evaluations.web.round_new import reviewers

NEEDED: Final = {
    Act.TAG: Action.TAG,
    Act.UNTAG: Action.TAG,
    Act.GIVE: Action.MANAGE,
    Act.ROUND: Action.MANAGE,
}
WORDS: Final = {
    Act.TAG: "Put the tag “{tag}” to",
    Act.UNTAG: "Take the tag “{tag}” from",
    Act.GIVE: "Give to the people you chose",
    Act.ROUND: "Put into a round “{round}”",
}


@dataclass(frozen=True)
class Step:
    """What was asked for. ``ids``: which comparisons; one more than can be done at once where there are more."""

    evaluation: Evaluation
    user: User
    wanted: dict[str, Any]
    filters: Sequence[Filter]
    ids: list[int]
    posted: Any

    @property
    def is_large(self) -> bool:
        return len(self.ids) > tagging.MOST_AT_ONCE


@require_POST
def comparisons_act(request: HttpRequest, slug: str) -> HttpResponse:
    user = cast(User, request.user)
    form = ActForm(request.POST)
    if not form.is_valid():
        access.evaluation_for(user, slug)
        raise Http404
    wanted = form.wanted()
    evaluation = access.evaluation_for(user, slug, NEEDED[wanted["act"]])
    filters = filters_of(request, evaluation) if wanted["which"] == Which.ALL else []
    back = redirect(reverse("comparisons", args=[slug], query=request.GET))
    with told_if_refused(request, otherwise=lambda: keep_asked(request, slug)):
        if wanted["which"] == Which.ALL:
            ids = ids_of(evaluation, filters, tagging.MOST_AT_ONCE)
        else:
            ids = numbers_in(request, "comparison")
        step = Step(evaluation, user, wanted, filters, ids, request.POST)
        refuse(step)
        if wanted["which"] == Which.ALL and not wanted["confirmed"]:
            return asked_first(request, step)
        DO[wanted["act"]](request, step)
    return back


def filters_of(request: HttpRequest, evaluation: Evaluation) -> list[Filter]:
    form = filter_form(request, evaluation)
    if not form.is_valid() or "judge_choice" in request.GET:
        raise Http404
    return asked_of(form)


def refuse(step: Step) -> None:
    act, wanted = step.wanted["act"], step.wanted
    if not step.ids:
        raise InputRefused("Choose at least one comparison in the list.")
    if act in (Act.TAG, Act.UNTAG):
        tagging.refuse_name(wanted["tag"])
    elif step.is_large:
        raise InputRefused(f"More than {tagging.MOST_AT_ONCE:,} comparisons match: filter for fewer first.")
    if act == Act.ROUND and not wanted["round"]:
        raise InputRefused("Give the round a name.")
    if act == Act.GIVE:
        people_of(step)


def asked_first(request: HttpRequest, step: Step) -> HttpResponse:
    """How many it is about, before anything is done."""
    context = {
        "page": "comparisons",
        "evaluation": step.evaluation,
        "step": step,
        "words": WORDS[step.wanted["act"]].format(**step.wanted),
        "number": min(len(step.ids), tagging.MOST_AT_ONCE),
        "filter": " and ".join(one.in_words() for one in step.filters) or "every comparison",
        "kept": [(name, value) for name in ("act", "which", "tag", "round") if (value := request.POST.get(name))],
        "people": request.POST.getlist("people"),
    }
    return render(request, "comparisons_act/comparisons_act.html", context)


# ---- one function for each act --------------------------------------------------------------


def put_tag(request: HttpRequest, step: Step) -> None:
    name = step.wanted["tag"]
    takes_away = step.wanted["act"] == Act.UNTAG
    if step.is_large:
        work = tagging.tag_all(step.evaluation, step.filters, name, takes_away=takes_away, user=step.user)
        nudge(tag_all, work.pk)
        doing = "taken from" if takes_away else "put to"
        messages.success(request, f"“{name}” is being {doing} all that match. How far it is stands with the tags.")
        return
    change = tagging.untag if takes_away else tagging.tag
    say_with_undo(request, step.evaluation, change(step.evaluation, step.ids, name, user=step.user))


def say_with_undo(request: HttpRequest, evaluation: Evaluation, event: Event) -> None:
    number, name = event.after["number"], event.after["name"]
    comparisons = f"{number:,} comparison{'' if number == 1 else 's'}"
    has = "was taken from" if event.verb == tagging.UNTAGGED else "was put to"
    if not number:
        messages.warning(request, f"Nothing changed: “{name}” stands as you asked for already.")
        return
    undo = reverse("slices", args=[evaluation.slug])
    said = format_html('“{}” {} {}. <a href="{}#step-{}">Undo</a>', name, has, comparisons, undo, event.pk)
    messages.success(request, said)


def give(request: HttpRequest, step: Step) -> None:
    people = people_of(step)
    comparisons = list(Comparison.objects.filter(evaluation=step.evaluation, pk__in=step.ids))
    given = assign(step.evaluation, comparisons, people, step.user)
    messages.add_message(request, messages.SUCCESS if given.number else messages.WARNING, said(given, people))


def people_of(step: Step) -> list[User]:
    return PeopleForm(step.posted, people=reviewers(step.evaluation)).chosen()


def put_into_round(request: HttpRequest, step: Step) -> None:
    made = make_round_of(step.evaluation, step.ids, name=step.wanted["round"], user=step.user)
    address = reverse("round", args=[step.evaluation.slug, made.pk])
    words = 'The round <a href="{}">{}</a> has {} of them: people meet these before the pool.'
    messages.success(request, format_html(words, address, made.name, made.picks.count()))


DO: Final = {Act.TAG: put_tag, Act.UNTAG: put_tag, Act.GIVE: give, Act.ROUND: put_into_round}


def said(given: Given, people: Sequence[User]) -> str:
    if given.number:
        left_out = f" What they have reviewed already ({given.reviewed}) is left out." if given.reviewed else ""
        return told(given.number, people) + left_out
    names = ", ".join(map(str, people))
    done = "reviewed these already" if given.reviewed else "been given these already"
    both = " or been given them" if given.reviewed and given.waiting else ""
    return f"Nothing was given: {names} {'has' if len(people) == 1 else 'have'} {done}{both}."
