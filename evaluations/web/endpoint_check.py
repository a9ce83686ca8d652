"""Testing an endpoint from its page: a worker asks, since keys are set where workers run."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from evaluations.domain import InputRefused
from evaluations.models import User
from evaluations.services.judging.connecting import begin_handshake
from evaluations.tasks import check_endpoint, nudge
from evaluations.web.endpoint import endpoint_for, handshake_context


@require_POST
def endpoint_check(request: HttpRequest, pk: int) -> HttpResponse:
    row = endpoint_for(cast(User, request.user), pk)
    try:
        waiting = begin_handshake(row, request.POST.get("model", ""))
    except InputRefused as refused:
        messages.error(request, str(refused))
    else:
        nudge(check_endpoint, waiting.pk)
    return redirect("endpoint", pk)


@never_cache
@require_safe
def endpoint_handshakes(request: HttpRequest, pk: int) -> HttpResponse:
    row = endpoint_for(cast(User, request.user), pk)
    return render(request, "endpoint/_handshake.html", {"endpoint": row} | handshake_context(row))
