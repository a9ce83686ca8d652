"""What the web server says about the body of a request, in the request's environment."""

from enum import StrEnum
from typing import BinaryIO, Final

from django.http import HttpRequest

# A large body, open and in whole, in a file of its own that may be renamed: it is removed after the request.
BODY_FILE: Final = "judgeweb.body_file"
# Why the body was not read. The application then has an empty one.
BODY_REFUSAL: Final = "judgeweb.body_refusal"


class BodyRefusal(StrEnum):
    SIGNED_OUT = "signed_out"
    TOO_LARGE = "too_large"
    NO_ROOM = "no_room"
    NO_DATABASE = "no_database"


def get_body_refusal(request: HttpRequest) -> BodyRefusal | None:
    return request.META.get(BODY_REFUSAL)


def take_body_file(request: HttpRequest) -> BinaryIO | None:
    """The file with the whole body; None if it is small, or came through another server."""
    return request.META.get(BODY_FILE)
