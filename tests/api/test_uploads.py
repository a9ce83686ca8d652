"""Files that a program sends: refused before they are read, where they are not for it to send, or too long."""

from io import BytesIO

import pytest
from django.conf import LazySettings
from django.http.multipartparser import MultiPartParser

from evaluations.api import operations
from evaluations.domain.roles import Role
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.users import IdempotencyRecord
from tests.factories.evaluations import make_member, make_user
from tests.helpers.api_client import API_ROOT, ApiClient, token_for

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

IMPORTS = f"{API_ROOT}/evaluations/study/imports"


def sent(asking: ApiClient, body: BytesIO, length: int, kind: str = "application/octet-stream", key: str = "") -> int:
    headers = {"Authorization": f"Bearer {asking.token}", **({"Idempotency-Key": key} if key else {})}
    extra = {"wsgi.input": body, "CONTENT_LENGTH": str(length), "CONTENT_TYPE": kind}
    return asking.client.generic("POST", IMPORTS, headers=headers, **extra).status_code  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["", "one"])
@pytest.mark.parametrize("kind", ["application/octet-stream", "multipart/form-data; boundary=x"])
def test_who_may_not_bring_in_files_is_told_before_one_is_kept(
    kind: str, key: str, evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes is read away, for the answer to arrive; none of it is written to the disk."""

    def kept(*_: object) -> None:
        raise AssertionError("The file was kept.")

    monkeypatch.setattr(operations, "spool_body", kept)
    monkeypatch.setattr(MultiPartParser, "parse", kept)
    reviewing, strange = (
        ApiClient(token_for(one)) for one in (make_member(evaluation, Role.REVIEWER), make_user("stranger"))
    )
    assert sent(reviewing, BytesIO(b"x" * 100), 100, kind, key) == 403
    assert sent(strange, BytesIO(b"x" * 100), 100, kind, key) == 404


def test_a_file_that_is_too_long_leaves_nothing_and_its_key_free(
    asking: ApiClient, evaluation: Evaluation, settings: LazySettings
) -> None:
    settings.MAX_UPLOAD_BYTES = 100
    assert sent(asking, BytesIO(b"x" * 101), 101, key="one") == 413
    assert not Import.objects.exists()
    assert not IdempotencyRecord.objects.exists()
    row = b'{"query_id":"1","query":"q","candidate_a":"a","response_a":"x","candidate_b":"b","response_b":"y"}'
    assert len(row) <= 100
    assert sent(asking, BytesIO(row), len(row), key="one") == 201
