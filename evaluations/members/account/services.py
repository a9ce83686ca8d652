"""What a person ends of their own account."""

from django.db import transaction

from evaluations.audit.security import record_security_event
from evaluations.domain.security import SecurityEventKind
from evaluations.members.services import end_sessions, expire_sign_in_links
from evaluations.models.sign_ins import Session
from evaluations.models.users import User


@transaction.atomic
def end_session(session: Session, *, by: User) -> None:
    """Sign one browser out. Ending it again changes nothing."""
    deleted, _ = Session.objects.filter(pk=session.pk).delete()
    if deleted:
        detail = f"one of {session.user_agent or 'an unknown browser'}"
        record_security_event(SecurityEventKind.SESSIONS_ENDED, session.user, by=by, detail=detail)


@transaction.atomic
def sign_out_everywhere(user: User) -> int:
    """End all sessions of the account, this one too, and its unused sign-in links; the number of sessions."""
    expire_sign_in_links(user)
    return end_sessions(user, by=user)
