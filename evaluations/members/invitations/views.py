"""What an owner and an invited person do with an invitation."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from evaluations.domain.errors import InputRefused
from evaluations.members.invitations.services import accept_invitation, decline_invitation, withdraw_invitation
from evaluations.members.requests import get_invitation_or_404, get_own_invitation_or_404
from evaluations.web.refusals import show_refusal
from evaluations.web.requests import AuthenticatedRequest


@require_POST
def invitation_withdraw(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    invitation = get_invitation_or_404(request, slug, pk)
    with show_refusal(request):
        withdraw_invitation(invitation, by=request.user)
        messages.success(request, f"Invitation of “{invitation.username}” withdrawn.")
    return redirect("members", slug)


@require_POST
def invitation_accept(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    invitation = get_own_invitation_or_404(request, pk)
    try:
        membership = accept_invitation(invitation, by=request.user)
    except InputRefused as refused:
        messages.error(request, str(refused))
        return redirect("evaluations")
    messages.success(request, f"You joined “{membership.evaluation.name}” as {membership.role}.")
    return redirect("evaluation", membership.evaluation.slug)


@require_POST
def invitation_decline(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    invitation = get_own_invitation_or_404(request, pk)
    decline_invitation(invitation)
    messages.success(request, f"You declined the invitation to “{invitation.evaluation.name}”.")
    return redirect("evaluations")
