"""Where to report a weakness, as RFC 9116 has it."""

from datetime import timedelta
from typing import Final

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

VALID_FOR: Final = timedelta(days=180)


@login_not_required
@require_safe
def security_txt(request: HttpRequest) -> HttpResponse:
    if not settings.SECURITY_CONTACT:
        raise Http404
    expires = (timezone.now() + VALID_FOR).strftime("%Y-%m-%dT%H:%M:%SZ")
    lines = [
        f"Contact: {settings.SECURITY_CONTACT}",
        f"Expires: {expires}",
        "Preferred-Languages: en",
        f"Canonical: {settings.ADDRESS}{request.path}",
    ]
    return HttpResponse("".join(f"{line}\n" for line in lines), content_type="text/plain; charset=utf-8")
