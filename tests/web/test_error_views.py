"""Pages for what went wrong: in house style, and without a database behind them."""

from collections.abc import Callable
from http import HTTPStatus

import pytest
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import BadRequest, PermissionDenied, RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from django.test import Client, RequestFactory, override_settings
from django.urls import path

from evaluations.models.users import User
from evaluations.web.error_views import bad_request, forbidden, not_found, server_error
from evaluations.web.middleware import UploadLimitMiddleware
from tests.factories.evaluations import give_rights, make_user

handler400, handler403 = bad_request, forbidden
handler404, handler500 = not_found, server_error


def failing(error: Exception) -> HttpResponse:
    raise error


def view(error: Exception) -> Callable[[HttpRequest], HttpResponse]:
    def answer(request: HttpRequest) -> HttpResponse:
        return failing(error)

    return login_not_required(answer)


urlpatterns = [
    path("400", view(BadRequest("odd"))),
    path("403", view(PermissionDenied("Your role does not allow <do> this."))),
    path("404", view(Http404())),
    path("413", view(RequestDataTooBig("large"))),
    path("500", view(RuntimeError("broken"))),
]


@pytest.fixture
def visitor() -> Client:
    return Client(raise_request_exception=False)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "Invalid request"),
        (403, "Your role does not allow &lt;do&gt; this."),
        (404, "Page not found"),
        (413, "File or form too large"),
        (500, "Something broke on our side"),
    ],
)
@override_settings(ROOT_URLCONF="tests.web.test_error_views")
def test_a_fault_is_told_in_house_style_without_a_database(visitor: Client, status: int, words: str) -> None:
    answer = visitor.get(f"/{status}")
    page = answer.content.decode()
    assert answer.status_code == status
    assert words in page
    assert 'href="/"' in page
    assert "css/app.css" in page
    assert "script-src 'self'" in answer["Content-Security-Policy"]


def test_a_page_of_the_site_that_is_not_there_is_404_in_house_style(client: Client, db: None) -> None:
    client.force_login(make_user())
    answer = client.get("/no-such-page")
    assert answer.status_code == 404
    assert "Page not found" in answer.content.decode()


def test_a_form_without_its_token_says_what_to_do(db: None) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(make_user())
    answer = strict.post("/new", {"name": "x"})
    assert answer.status_code == 403
    assert "This form has expired" in answer.content.decode()


def test_a_form_that_is_too_large_is_413_and_stores_nothing(client: Client, db: None, settings: object) -> None:
    client.force_login(give_rights(make_user()))
    answer = client.post("/new", {"name": "x" * 6_000_000})
    assert answer.status_code == 413
    assert "Nothing was stored" in answer.content.decode()


@override_settings(MAX_UPLOAD_BYTES=2 * 1024 * 1024)
def test_a_file_that_is_too_large_is_refused_before_it_is_read_as_a_form() -> None:
    def never(request: HttpRequest) -> HttpResponse:
        raise AssertionError("the request went on")

    body = b"x" * (4 * 1024 * 1024)
    request = RequestFactory().post("/", data=body, content_type="application/octet-stream")
    answer = UploadLimitMiddleware(never)(request)
    assert answer.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    assert "files of up to 2 MB, and this one has 4 MB" in answer.content.decode()


@override_settings(MAX_UPLOAD_BYTES=2 * 1024 * 1024)
def test_a_file_of_the_largest_size_goes_on() -> None:
    request = RequestFactory().post("/", data=b"x" * (2 * 1024 * 1024), content_type="application/octet-stream")
    assert UploadLimitMiddleware(lambda _: HttpResponse("on"))(request).content == b"on"


def test_the_theme_of_a_person_reaches_the_page(client: Client, db: None) -> None:
    user: User = make_user(theme="dark")
    client.force_login(user)
    page = client.get("/").content.decode()
    assert 'data-theme="dark"' in page
