"""An API client with a token."""

import json
from collections.abc import Collection
from typing import Any

from django.test import Client

from evaluations.domain.roles import Scope
from evaluations.members.services import create_token
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User

API_ROOT = "/api/v1"


def token_for(user: User, scopes: Collection[Scope] = tuple(Scope), evaluation: Evaluation | None = None) -> str:
    return create_token(user, name="a program", scopes=scopes, days=7, evaluation=evaluation)[1]


class ApiClient:
    """Requests with one token; answers as they come."""

    def __init__(self, token: str) -> None:
        self.client, self.token = Client(), token

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        sent = {
            "Authorization": f"Bearer {self.token}",
            **{name.replace("_", "-"): text for name, text in headers.items()},
        }
        data = "" if body is None else json.dumps(body)
        return self.client.generic(method, API_ROOT + path, data, "application/json", headers=sent)

    def get(self, path: str, **headers: str) -> Any:
        return self("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self("POST", path, body, **headers)

    def patch(self, path: str, body: Any = None, **headers: str) -> Any:
        return self("PATCH", path, body, **headers)
