"""What the tests of the API share: a token, and a client that sends it."""

import pytest

from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from tests.factories.evaluations import make_evaluation, make_user
from tests.helpers.api_client import ApiClient, token_for


@pytest.fixture
def owner() -> User:
    return make_user("owner")


@pytest.fixture
def evaluation(owner: User) -> Evaluation:
    return make_evaluation(owner, slug="study")


@pytest.fixture
def asking(owner: User, evaluation: Evaluation) -> ApiClient:
    """The owner's program, with a token for everything."""
    return ApiClient(token_for(owner))
