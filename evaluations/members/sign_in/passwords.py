"""Passwords that are asked for: at the sign-in page, and before something that needs more than a session."""

from django.contrib.auth import authenticate
from django.http import HttpRequest

from evaluations.audit.security import get_client, record_security_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.security import SecurityEventKind
from evaluations.members.selectors import find_account
from evaluations.members.sign_in.devices import find_device_id
from evaluations.models.users import User, fold_username
from evaluations.web.throttle import begin_try, forgive_try, limits_of_session, limits_of_sign_in

WRONG_PASSWORD = "Wrong username or password."


def authenticate_by_password(request: HttpRequest, username: str, password: str) -> User:
    """The user of this name and password. An unknown name costs the same queries and time as a known one."""
    account = find_account(username)
    limits = limits_of_sign_in(fold_username(username), get_client().address, find_device_id(request, account))
    counted = begin_try(limits, user=account, advice=", or use a sign-in link")
    user = authenticate(request, username=account.username if account else username, password=password)
    if not isinstance(user, User):
        # Of an unknown name nothing is kept: people type their password into the wrong field.
        detail = "" if account else "unknown username"
        record_security_event(SecurityEventKind.SIGN_IN_FAILED, account, detail=detail)
        raise InputRefused(WRONG_PASSWORD)
    forgive_try(counted)
    record_security_event(SecurityEventKind.SIGNED_IN, user)
    return user


def check_present_password(user: User, password: str, session_key: str) -> None:
    """Refuse unless this is the password of the signed-in person."""
    counted = begin_try(limits_of_session(session_key), user=user)
    if not user.check_password(password):
        record_security_event(SecurityEventKind.PASSWORD_REFUSED, user)
        raise InputRefused("That’s not your current password.", field="present")
    forgive_try(counted)
