"""Try a judge: one question put to it, worked by the worker like any other, and what came of it."""

from typing import cast

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused
from evaluations.models import Judge, Run, User
from evaluations.services.judging.running import start_run
from evaluations.services.judging.trying import Trial, only_this, trial_of
from evaluations.services.reporting.noticing import note_seen
from evaluations.tasks import nudge, work_run
from evaluations.web.call import comparisons_of
from evaluations.web.judge import judge_for, latest_runs, number_in, order_asked, query_of, shown_page, subject_asked
from evaluations.web.run import STOP_POLLING


@require_POST
def judge_try(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Start a run of one call; where it was asked that in vain before, it is asked again."""
    user = cast(User, request.user)
    row = judge_for(access.evaluation_for(user, slug, Action.MANAGE), pk)
    subject, shown = subject_asked(request.POST, row), order_asked(request.POST)
    if subject is None:
        raise Http404
    about = query_of(subject, shown)
    try:
        run = start_run(row, user=user, **only_this(subject, shown))
    except InputRefused as refused:
        messages.error(request, str(refused))
        return redirect(f"{reverse('judge', args=[slug, pk])}?{about}#try")
    nudge(work_run, run.pk)
    return redirect(f"{reverse('judge_tried', args=[slug, pk])}?{about}&run={run.pk}#try")


@never_cache
@require_safe
def judge_tried(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The judge's page with what came of the try ``run``, or that alone for a page that asks again and again."""
    user = cast(User, request.user)
    row = judge_for(access.evaluation_for(user, slug, Action.SEE_ALL), pk)
    tried = trial_asked(request, row)
    if tried is not None and tried.call is not None and access.may(user, Action.REVIEW, row.evaluation):
        note_seen(user, row.evaluation, list(comparisons_of(tried.call)), tests=True)
    if not request.htmx or tried is None:  # type: ignore[attr-defined]
        return shown_page(request, row, tried)
    context = {"evaluation": row.evaluation, "judge": row, "tried": tried}
    if tried.is_moving:
        return render(request, "judge/_tried.html", context)
    return render(request, "judge/_ended.html", context | {"runs": latest_runs(row)}, status=STOP_POLLING)


def trial_asked(request: HttpRequest, row: Judge) -> Trial | None:
    """The try of that run; none where none is asked for."""
    wanted = request.GET.get("run", "")
    if not wanted:
        return None
    runs = Run.objects.select_related("judge__rubric_version__rubric")
    tried = trial_of(get_object_or_404(runs, judge=row, pk=number_in(wanted)))
    if tried is None:
        raise Http404
    return tried
