"""Whether the body of a request is wanted, before it is read."""

from importlib import import_module
from io import BytesIO
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.core.handlers.wsgi import WSGIRequest
from django.db import DatabaseError, close_old_connections
from django.http import HttpRequest

from evaluations.api.authentication import read_bearer_token
from evaluations.api.problems import Problem
from evaluations.domain.disk_space import has_room
from evaluations.web.middleware import FORM_BYTES
from evaluations.web.request_bodies import BodyRefusal


def refuse_body(environ: dict[str, Any], size: int | None) -> BodyRefusal | None:
    """Why a body that is larger than a small form is not read, or None. ``size``: None if it is unknown."""
    if size is not None and size > settings.MAX_UPLOAD_BYTES + FORM_BYTES:
        return BodyRefusal.TOO_LARGE
    try:
        close_old_connections()
        if not is_signed_in(WSGIRequest({**environ, "wsgi.input": BytesIO()})):
            return BodyRefusal.SIGNED_OUT
    except DatabaseError:
        return BodyRefusal.NO_DATABASE
    # The file of a form is written a second time, out of the form.
    copies = 2 if environ.get("CONTENT_TYPE", "").startswith("multipart/") else 1
    return (
        None if has_room(settings.DATA_DIR, (size or 0) * copies, settings.DISK_RESERVE_BYTES) else BodyRefusal.NO_ROOM
    )


def is_signed_in(request: HttpRequest) -> bool:
    if "Authorization" in request.headers:
        try:
            read_bearer_token(request)
        except Problem:
            return False
        return True
    key = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
    if not key:
        return False
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(key)
    return get_user(request).is_authenticated
