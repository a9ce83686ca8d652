"""Idempotency keys, under which a write is done once and answered the same way each time."""

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone

from evaluations.api.problems import FieldError, Problem
from evaluations.models.users import ApiToken, IdempotencyRecord

KEEP_ANSWERS_FOR: Final = timedelta(days=1)
DROPPED_AT_ONCE: Final = 500
KEY_HEADER: Final = "Idempotency-Key"
REPLAYED_HEADER: Final = "Idempotency-Replayed"
MAX_KEY_CHARACTERS: Final = 200


def begin_request(token: ApiToken, key: str, request_sha256: str) -> IdempotencyRecord:
    """The record of a request: a new one, or an earlier one with its answer. Raises Problem if it has none yet."""
    try:
        with transaction.atomic():
            return IdempotencyRecord.objects.create(token=token, key=key, request_sha256=request_sha256)
    except IntegrityError:
        kept = IdempotencyRecord.objects.filter(token=token, key=key).first()
    if kept is not None and kept.created_at < timezone.now() - KEEP_ANSWERS_FOR:
        kept.delete()
        return begin_request(token, key, request_sha256)
    if kept is not None and kept.request_sha256 != request_sha256:
        detail = "This key was already used for another request. Nothing was done. Use a new key for each write."
        raise Problem("key_reused", detail)
    if kept is None or kept.status is None:  # the first request was refused meanwhile, is at work, or its process died
        detail = (
            "The first request with this key is still in progress, or ended without a response. Nothing was done now. "
            "Try again. If this persists, check whether the first request took effect."
        )
        raise Problem("under_way", detail, headers={"Retry-After": "1"})
    return kept


def forget_request(record: IdempotencyRecord) -> None:
    """Allow the key to be used again, because nothing was done."""
    IdempotencyRecord.objects.filter(pk=record.pk).delete()


def drop_old_answers() -> None:
    """Delete some hundred answers of more than a day ago."""
    old = IdempotencyRecord.objects.filter(created_at__lt=Now() - KEEP_ANSWERS_FOR).order_by("created_at")
    IdempotencyRecord.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:DROPPED_AT_ONCE])).delete()


def run_once(request: HttpRequest, token: ApiToken, answer: Callable[[], HttpResponseBase]) -> HttpResponseBase:
    """Run a write once for each idempotency key and return its response; without a key, run it."""
    key = request.headers.get(KEY_HEADER, "")
    if not key:
        return answer()
    if len(key) > MAX_KEY_CHARACTERS or not (key.isascii() and key.isprintable()):
        fault = FieldError(f"header.{KEY_HEADER}", f"At most {MAX_KEY_CHARACTERS} printable ASCII characters.")
        raise Problem("invalid", f"{KEY_HEADER} is invalid. Nothing was done.", faults=[fault])
    record = begin_request(token, key, hash_request(request))
    if record.status is not None:
        return replay_answer(record)
    return run_and_store_answer(record, answer)


def run_and_store_answer(record: IdempotencyRecord, answer: Callable[[], HttpResponseBase]) -> HttpResponseBase:
    """Store only successful responses: a refused request may be corrected and sent again."""
    done = False
    try:
        response = answer()
        if isinstance(response, HttpResponse) and 200 <= response.status_code < 300:
            IdempotencyRecord.objects.filter(pk=record.pk).update(
                status=response.status_code,
                content_type=response.get("Content-Type", ""),
                location=response.get("Location", ""),
                body=response.content.decode(),
            )
            done = True
        return response
    finally:
        if not done:
            forget_request(record)


def replay_answer(record: IdempotencyRecord) -> HttpResponse:
    response = HttpResponse(record.body, status=record.status, content_type=record.content_type or None)
    response[REPLAYED_HEADER] = "true"
    if record.location:
        response["Location"] = record.location
    return response


def hash_request(request: HttpRequest) -> str:
    """Hash the whole request: method, path, body and files."""
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
