"""The health check for supervisors, proxies and monitors."""

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse

from evaluations.models.jobs import Worker


@login_not_required
def health(request: HttpRequest) -> HttpResponse:
    """Report the site's health in the first line, and missing workers in a second one."""
    try:
        works = Worker.objects.alive().exists()
    except DatabaseError:
        return HttpResponse("the database does not answer\n", status=503, content_type="text/plain")
    return HttpResponse("ok\n" if works else "ok\nno worker is running\n", content_type="text/plain")
