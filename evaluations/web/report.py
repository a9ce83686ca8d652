"""The report: how far judges agree with people and people with each other, and each further part of it as a page."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.domain import Coding, InputRefused, Part, Rules
from evaluations.forms.report import MEASURES, Asked, ReportForm
from evaluations.models import Evaluation, Score, User
from evaluations.services.reporting.narrowing import FEW, few_of
from evaluations.services.reporting.noticing import note_seen
from evaluations.services.reporting.reporting import BY_ASPECT, Report, make_report, report_for
from evaluations.web.report_overview import overview
from evaluations.web.report_parts import part_context

NAMES: Final = {
    Part.AGREEMENT: "Agreement",
    Part.WINS: "Win rates",
    Part.BIAS: "Bias",
    Part.PEOPLE: "People",
    Part.JUDGES: "Judges",
    Part.SCORES: "Scores",
}
OF_JUDGES: Final = (Part.BIAS, Part.JUDGES)
OF_THIS_PART: Final = ("sort", "measure")  # how one part is laid out says nothing to the others
MANY_ROWS: Final = 150  # of single people and pairs: more are shown for one aspect at a time


@dataclass(frozen=True)
class Tab:
    label: str
    address: str
    is_current: bool


@require_safe
def report(request: HttpRequest, slug: str, part: str = Part.AGREEMENT.value) -> HttpResponse:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug)
    sees_all, sees_judges = access.may(user, Action.SEE_ALL, evaluation), access.may_see_judges(user, evaluation)
    asked_part = part_named(part, sees_judges)
    form = ReportForm(request.GET, evaluation=evaluation, sees_all=sees_all, sees_judges=sees_judges)
    context = {
        "page": "report",
        "evaluation": evaluation,
        "form": form,
        "part": asked_part.value,
        "part_name": NAMES[asked_part],
        "part_template": f"report/parts/{asked_part.value}.html",
        "path": request.path,
        "sees_judges": sees_judges,
        "sees_all": sees_all,
        "asked": {},
        "tabs": list(tabs(evaluation, {}, asked_part, sees_judges=sees_judges)),
    }
    try:
        if form.is_valid():
            made = report_to(user, evaluation, form, asked_part)
            if asked_part is Part.AGREEMENT and not made.names and sees_all and has_scores(evaluation):
                return redirect(f"{part_address(evaluation, Part.SCORES)}?{request.GET.urlencode()}".rstrip("?"))
            context |= told(made, evaluation, form, asked_part)
            context["gives_away"] = (
                sees_all and access.may(user, Action.REVIEW, evaluation) and 0 < made.comparisons <= FEW
            )
            context |= part_context(evaluation, made, asked_part, form.cleaned_data["aspect"], form.asked())
            return render(request, "report/report.html", context)
    except InputRefused as refused:
        form.add_error(None, str(refused))
    return render(request, "report/report.html", {**context, "is_filtered": True}, status=422)


def has_scores(evaluation: Evaluation) -> bool:
    return Score.objects.filter(rater__evaluation=evaluation).exists()


def part_named(name: str, sees_judges: bool) -> Part:
    if name not in list(Part) or (name in OF_JUDGES and not sees_judges):
        raise Http404
    return Part(name)


def report_to(user: User, evaluation: Evaluation, form: ReportForm, part: Part) -> Report:
    """The report that this person may see. Where it is on few comparisons, they have seen what others chose on each."""
    made = made_for(user, evaluation, form, part)
    if access.may(user, Action.REVIEW, evaluation):
        few = few_of(access.open_comparisons(user, evaluation), evaluation, form.rules())
        note_seen(user, evaluation, few, judges=access.may_see_judges(user, evaluation))
    return made


def made_for(user: User, evaluation: Evaluation, form: ReportForm, part: Part) -> Report:
    rules, aspect = form.rules(), form.cleaned_data["aspect"] if part in BY_ASPECT else None
    if access.may(user, Action.SEE_ALL, evaluation):
        return report_for(evaluation, rules, parts=(part,), aspect=aspect)
    comparisons = access.open_comparisons(user, evaluation)
    sees_judges = access.may_see_judges(user, evaluation)
    return make_report(evaluation, comparisons, rules, with_judges=sees_judges, parts=(part,), aspect=aspect)


def told(made: Report, evaluation: Evaluation, form: ReportForm, part: Part) -> dict[str, Any]:
    """What the page says of this report."""
    asked, ties, measure = form.asked(), form.laid_out("ties"), form.laid_out("measure")
    aspect = form.cleaned_data["aspect"]
    return {
        "report": made,
        "asked": asked,
        "is_filtered": bool(form.in_force()),
        "tabs": list(tabs(evaluation, asked, part, sees_judges="judge" in form.fields)),
        "ties": ties,
        "measure": measure,
        "measure_name": dict(MEASURES)[measure],
        "kind": "percent" if measure == "agreement" else "decimal",
        "difference_kind": "points" if measure == "agreement" else "signed",
        "sort": form.laid_out("sort"),
        "aspect": aspect,
        "sentences": [judge.sentence for judge in made.judges.values() if judge.sentence],
        "overview": overview(made, ties, measure, form.laid_out("sort")),
        "in_detail": bool(aspect) or rows_of_single_people(made) <= MANY_ROWS,
        "cells": cells_address(evaluation, form.rules(), asked),
    }


def tabs(evaluation: Evaluation, asked: Asked, current: Part, *, sees_judges: bool) -> Iterator[Tab]:
    kept = {name: values for name, values in asked.items() if name not in OF_THIS_PART}
    query = f"?{urlencode(kept, doseq=True)}" if kept else ""
    for part, name in NAMES.items():
        if sees_judges or part not in OF_JUDGES:
            yield Tab(name, part_address(evaluation, part) + query, part == current)


def part_address(evaluation: Evaluation, part: Part) -> str:
    if part is Part.AGREEMENT:
        return reverse("report", args=[evaluation.slug])
    return reverse("report_part", args=[evaluation.slug, part.value])


def rows_of_single_people(made: Report) -> int:
    """How many rows name one person or two."""
    return sum(
        len(aspect.human_human.pairs)
        + sum(len(judge.judge_human.people) + len(judge.ceiling.s1.left_out) for judge in aspect.answering.values())
        for aspect in made.aspects.values()
    )


def cells_address(evaluation: Evaluation, rules: Rules, asked: Asked) -> str:
    """Where the comparisons behind a cell are listed. First and second shown are no choice to list by: none."""
    if rules.coding is not Coding.CANDIDATE:
        return ""
    passed = (
        "slice",
        "category",
        "candidate_1",
        "candidate_2",
        "reviewer",
        "since",
        "until",
        "seen",
        "split_rule",
        "failed",
        "part",
    )
    query = urlencode({name: asked[name] for name in passed if name in asked}, doseq=True)
    return f"{reverse('comparisons', args=[evaluation.slug])}?{query}{'&' if query else ''}"
