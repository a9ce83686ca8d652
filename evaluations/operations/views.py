"""The health check for supervisors, proxies and monitors."""

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse

from evaluations.models.jobs import Worker


@login_not_required
def health(request: HttpRequest) -> HttpResponse:
    """The first line is about the site; a second one tells where nothing works in the background."""
    try:
        works = Worker.objects.alive().exists()
    except DatabaseError:
        return HttpResponse("the database does not answer\n", status=503, content_type="text/plain")
    return HttpResponse("ok\n" if works else "ok\nno worker is running\n", content_type="text/plain")
