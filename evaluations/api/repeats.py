"""``Idempotency-Key``: the same write, sent again, is answered again and not done again."""

import hashlib
from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from evaluations.api.problems import Fault, Problem
from evaluations.models import ApiToken, KeptAnswer
from evaluations.services import repeating

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotency-Replayed"
LONGEST: Final = 200


def once(request: HttpRequest, token: ApiToken, answer: Callable[[], HttpResponseBase]) -> HttpResponseBase:
    """What the write is answered with; without a key it is simply done."""
    key = request.headers.get(HEADER, "")
    if not key:
        return answer()
    if len(key) > LONGEST or not (key.isascii() and key.isprintable()):
        fault = Fault(f"header.{HEADER}", f"At most {LONGEST} characters of plain ASCII.")
        raise Problem("invalid", f"{HEADER} cannot be used. Nothing was done.", faults=[fault])
    try:
        place = repeating.begin(token, key, sum_of(request))
    except repeating.OtherRequest:
        detail = "This key was sent with another request before. Nothing was done: give each write a key of its own."
        raise Problem("key_reused", detail) from None
    except repeating.UnderWay:
        detail = (
            "The first request under this key is at work still, or ended without an answer. Nothing was done now: "
            "try again, and if it stays so look whether it was done."
        )
        raise Problem("under_way", detail, headers={"Retry-After": "1"}) from None
    if isinstance(place, repeating.Answer):
        return replayed(place)
    return kept(place, answer)


def kept(place: KeptAnswer, answer: Callable[[], HttpResponseBase]) -> HttpResponseBase:
    """Only what was done is kept: what was refused may be sent again, mended or later."""
    done = False
    try:
        made = answer()
        if isinstance(made, HttpResponse) and 200 <= made.status_code < 300:
            repeating.keep(
                place,
                repeating.Answer(
                    made.status_code, made.get("Content-Type", ""), made.get("Location", ""), made.content.decode()
                ),
            )
            done = True
        return made
    finally:
        if not done:
            repeating.forget(place)


def replayed(answer: repeating.Answer) -> HttpResponse:
    made = HttpResponse(answer.body, status=answer.status, content_type=answer.content_type or None)
    made[REPLAYED] = "true"
    if answer.location:
        made["Location"] = answer.location
    return made


def sum_of(request: HttpRequest) -> str:
    """Of the whole request: what is done, where, and with which words or file."""
    digest = hashlib.sha256(f"{request.method} {request.get_full_path()}\n".encode())
    if request.content_type == "multipart/form-data":
        for name, values in sorted(request.POST.lists()):
            digest.update(repr((name, values)).encode())
        for name, file in sorted(request.FILES.items()):
            digest.update(repr((name, file.name)).encode())  # type: ignore[union-attr]
            for chunk in file.chunks():  # type: ignore[union-attr]
                digest.update(chunk)
            file.seek(0)  # type: ignore[union-attr]
    elif (spooled := getattr(request, "spooled", None)) is not None:
        while block := spooled.read(64 * 1024):
            digest.update(block)
        spooled.seek(0)
    else:
        digest.update(request.body)
    return digest.hexdigest()
