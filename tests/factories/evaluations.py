"""Evaluations, members and comparisons for tests."""

import hashlib
import itertools
from typing import Any

from evaluations.access import RIGHT_COLUMNS, Right
from evaluations.comparisons.search.services import add_to_search_index
from evaluations.domain.roles import Role
from evaluations.domain.texts import ComparisonOrigin
from evaluations.members.services import set_role
from evaluations.models.comparisons import Candidate, Comparison, Query, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.users import User
from evaluations.overview.services import create_evaluation

FIRST_NUMBER = 1001  # beyond the numbers that tests write themselves
_numbers = itertools.count(FIRST_NUMBER)


def restart_numbers(first: int = FIRST_NUMBER) -> None:
    """Name the rows of the next test as if it were the only one: keys decide about splits, and so about figures."""
    global _numbers
    _numbers = itertools.count(first)


def make_user(username: str = "", **columns: Any) -> User:
    return User.objects.create_user(username or f"person{next(_numbers)}", **columns)


def give_rights(user: User, *rights: Right) -> User:
    """Give rights to this account alone, as a site administrator would."""
    columns = {RIGHT_COLUMNS[right].account: True for right in rights or Right}
    User.objects.filter(pk=user.pk).update(**columns)
    user.refresh_from_db()
    return user


def make_evaluation(owner: User | None = None, slug: str = "", **columns: Any) -> Evaluation:
    slug = slug or f"study-{next(_numbers)}"
    columns = {"reviews_wanted": 1, **columns}
    return create_evaluation(slug=slug, name=f"Study {slug}", owner=owner or make_user(), by=None, **columns)


def make_member(evaluation: Evaluation, role: Role, username: str = "") -> User:
    user = make_user(username)
    set_role(evaluation, user, role, by=None)
    return user


def make_response(query: Query, candidate: str, text: str) -> Response:
    row, _ = Candidate.objects.get_or_create(evaluation=query.evaluation, name=candidate)
    return Response.objects.create(
        query=query,
        candidate=row,
        messages=[{"role": "assistant", "content": text}],
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        characters=len(text),
    )


def make_comparison(
    evaluation: Evaluation,
    *,
    key: str = "",
    query: str = "",
    response_a: str = "Paris.",
    response_b: str = "The capital of France is Lyon.",
    candidates: tuple[str, str] = ("alpha", "beta"),
    **columns: Any,
) -> Comparison:
    """One comparison; without words of its own its question is unlike any other, so that each is asked."""
    number = next(_numbers)
    key = key or f"q{number}"
    query = query or f"What is the capital of France? ({number})"
    row, _ = Query.objects.get_or_create(
        evaluation=evaluation,
        key=key,
        defaults={
            "cluster": key,
            "messages": [{"role": "user", "content": query}],
            "text": query,
            "sha256": hashlib.sha256(query.encode()).hexdigest(),
            **columns,
        },
    )
    comparison = Comparison.objects.create(
        evaluation=evaluation,
        query=row,
        response_a=make_response(row, candidates[0], response_a),
        response_b=make_response(row, candidates[1], response_b),
        origin=ComparisonOrigin.BY_HAND,
        random_order=number,
    )
    add_to_search_index([comparison])
    return comparison


def make_human(evaluation: Evaluation, name: str = "") -> Rater:
    return Rater.objects.create(evaluation=evaluation, kind="human", name=name or f"human{next(_numbers)}")
