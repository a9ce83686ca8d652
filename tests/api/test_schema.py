"""What schemathesis makes up by the document: no 500, every answer as the document says, nothing without a token.

A few requests of each kind for each operation. `EXAMPLES=200 pytest tests/api/test_schema.py` makes up more.
"""

import os
from collections.abc import Iterator
from typing import Any, Final, cast

import pytest
import schemathesis
from django.conf import LazySettings
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as how
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ignored_auth,
    response_schema_conformance,
    status_code_conformance,
)

from evaluations.models.users import User
from judgeweb.wsgi import application
from tests.factories.full_evaluation import make_full_evaluation
from tests.helpers.api_client import token_for

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

NUMBER: Final = 770_100
EXAMPLES: Final = int(os.environ.get("EXAMPLES", "2"))
CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
THERE: Final = {"slug": f"slug-{NUMBER}", "name": "agreement-aspects"}
# One wrong answer is enough to fail; what it would be at its smallest costs a hundred requests more.
MADE_UP: Final = how(
    max_examples=EXAMPLES,
    derandomize="EXAMPLES" not in os.environ,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def one_connection() -> Iterator[None]:
    """The requests see what the test has written: none of them closes the connection, as a server would."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.mark.usefixtures("one_connection")
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_nothing_that_is_made_up_breaks_an_operation(mode: GenerationMode, settings: LazySettings) -> None:
    settings.API_REQUESTS_PER_MINUTE = 1_000_000
    owner = make_full_evaluation(NUMBER).owner
    User.objects.filter(pk=owner.pk).update(is_superuser=True)
    headers = {"Authorization": f"Bearer {token_for(owner)}"}
    schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", app=application)
    asked, wrong = 0, []
    for found in schema.get_all_operations():
        operation = cast(Any, found).ok()

        def ask(case: Any) -> None:
            nonlocal asked
            asked += 1
            if asked % 2:  # the path leads to what there is: else nearly every answer would be 404
                case.path_parameters = {name: THERE.get(name, NUMBER) for name in case.path_parameters or {}}
            # Asked without its token again, a request costs three.
            without = [ignored_auth] if mode == GenerationMode.POSITIVE and asked % 4 == 1 else []
            case.call_and_validate(headers=headers, checks=[*CHECKS, *without])

        try:
            MADE_UP(given(case=operation.as_strategy(mode))(ask))()
        except Exception as failure:  # noqa: BLE001 - all operations are asked, and all that is wrong is told
            wrong.append(f"{operation.label}: {failure}")
    assert not wrong, "\n\n".join(wrong)
    assert asked > 150
