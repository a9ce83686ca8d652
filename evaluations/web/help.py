"""The words, the keys, and how to read a report."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe


@require_safe
def help_page(request: HttpRequest) -> HttpResponse:
    return render(request, "help/help.html", {"page": "help"})
