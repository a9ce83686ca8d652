"""Middleware that counts requests for monitors."""

import time

from django.http import HttpRequest, HttpResponse

from evaluations.operations.metrics import LATENCY, REQUESTS
from evaluations.web.middleware import GetResponse


class MetricsMiddleware:
    """Counts requests by the name of their route, so that addresses people make up add no series."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = time.perf_counter()
        response = self.get_response(request)
        match = request.resolver_match
        route = (match.view_name if match else None) or "none"
        method = request.method if request.method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE") else "other"
        REQUESTS.labels(route, method, str(response.status_code)).inc()
        LATENCY.labels(route, method).observe(time.perf_counter() - began)
        return response
