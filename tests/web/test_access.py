"""Every address of the site, walked: who gets in, and what stays hidden from those who do.

The walk takes its addresses from the URL patterns themselves. A new one is walked without being
listed; one that belongs to no evaluation has to be listed below, with who may open it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.http.response import HttpResponseBase
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from evaluations.domain.reviews import Reveal
from evaluations.domain.roles import Role
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.users import User
from tests.factories.evaluations import make_member, make_user
from tests.factories.full_evaluation import FullEvaluation, every_row, make_full_evaluation
from tests.factories.verdicts import make_review
from tests.helpers.browser_client import sign_in_client

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

FOR_ALL_THE_WORLD = {
    "sign_in",
    "sign_in_link",
    "join",
    "health",
    "ready",
    "work",
    "metrics",
    "api_openapi",
    "security_txt",
}
FOR_EVERYONE_SIGNED_IN = {
    "evaluations",
    "evaluation_new",
    "account",
    "account_password",
    "account_theme",
    "evaluation_names",
    "session_end",
    "sessions_end",
    "sign_out",
    "invitation_accept",
    "invitation_decline",
    "help",
    "moved_page",
    "mentions",
    "tokens",
    "token_revoke",
    "tokens_revoke",
    "api_docs",
}
FOR_ADMINISTRATORS = {
    "status",
    "accounts",
    "account_link",
    "account_disable",
    "account_enable",
    "account_rights",
    "account_end_access",
    "site_policy",
    "security_events",
    "endpoints",
    "endpoint_new",
    "endpoint_found",
    "endpoints_run_cancel",
    "endpoint",
    "endpoint_price",
    "endpoint_check",
    "endpoint_grant",
    "endpoint_withdraw",
    "endpoint_checks",
}
NUMBER, OTHER_NUMBER = 770_100, 880_200
METHODS = ("get", "post")
# 404: no contact for security is set. 410: a link that is used up.
OPENS_TO_ALL = (200, 404, 405, 410, 422)
OPENS = (200, 204, 286, 302, 308, 405)  # 204: nothing lies ahead. 308: a page that moved.
FOREIGN = dict.fromkeys(("judge", "candidate", "rater"), NUMBER)
WAYS_TO_ASK: tuple[dict[str, object], ...] = (
    {},
    {**FOREIGN, "category": "", "q": "query"},
    {"aspect": "clarity", "judge": NUMBER, "judge_choice": "A", "human_choice": "A"},
)


@dataclass(frozen=True)
class Door:
    name: str
    parameters: tuple[str, ...]

    @property
    def leads_into_an_evaluation(self) -> bool:
        return "slug" in self.parameters and self.name != "moved_page"

    def address(self, slug: str = "", number: int = NUMBER) -> str:
        values = {
            "slug": slug or "study",
            "pk": number,
            "delivery": number,
            "token": "x" * 43,
            "part": "wins",
            "name": "agreement-aspects",
            "old_path": "report",
        }
        return reverse(self.name, kwargs={name: values[name] for name in self.parameters})


def doors(resolver: URLResolver) -> Iterator[Door]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            # Of the API's own doors no session opens any: tests/api/test_access.py walks them.
            yield from () if pattern.namespace else doors(pattern)
        elif isinstance(pattern, URLPattern):
            assert pattern.name, f"{pattern.pattern} has no name"
            yield Door(pattern.name, tuple(pattern.pattern.converters))


DOORS = sorted(doors(get_resolver()), key=lambda door: door.name)
INTO_AN_EVALUATION = [door for door in DOORS if door.leads_into_an_evaluation]
OF_THE_SITE = [door for door in DOORS if not door.leads_into_an_evaluation]


def body(answer: HttpResponseBase) -> str:
    """What was sent, files included, and where a redirect leads; not the second in which it was sent."""
    sent = answer.getvalue() if hasattr(answer, "getvalue") else b""
    headers = {name: value for name, value in answer.headers.items() if name != "Expires"}
    return sent.decode(errors="replace") + str(headers)


def found(words: tuple[str, ...], answer: HttpResponseBase) -> list[str]:
    text = body(answer)
    return [word for word in words if word in text]


def ask(client: Client, method: str, address: str, **options: Any) -> HttpResponseBase:
    """An answer even where a view fails: the walk goes on and lists the 500 with the rest."""
    client.raise_request_exception = False
    answer: HttpResponseBase = getattr(client, method)(address, **options)
    return answer


@pytest.fixture
def marked() -> FullEvaluation:
    return make_full_evaluation(NUMBER)


# ---- that the walk goes where it says


def test_the_walk_has_a_row_of_every_kind(marked: FullEvaluation) -> None:
    # Of two tables the key is that of the evaluation or the comparison.
    marks = ({"id": NUMBER}, {"evaluation_id": NUMBER})
    empty = {
        model.__name__
        for model, rows in every_row()
        if not any(mark.items() <= row.items() for mark in marks for row in rows)
    }
    assert empty == {"User", "Session", "SitePolicy", "Throttle"}, "make one in tests/factories/full_evaluation.py"


def test_every_address_of_the_site_is_said_to_be_for_somebody() -> None:
    known = FOR_ALL_THE_WORLD | FOR_EVERYONE_SIGNED_IN | FOR_ADMINISTRATORS
    assert {door.name for door in OF_THE_SITE} == known, "list a new address here, with who may open it"


def test_an_owner_finds_something_behind_every_door_and_every_marked_word_somewhere(
    client: Client, marked: FullEvaluation
) -> None:
    """Else the tests below would be satisfied by pages that nobody can open, and by words that stand nowhere."""
    client.force_login(marked.owner)
    answers = {door.name: ask(client, "get", door.address(marked.evaluation.slug)) for door in INTO_AN_EVALUATION}
    assert {name: answer.status_code for name, answer in answers.items() if answer.status_code not in OPENS} == {}
    seen = "".join(map(body, answers.values()))
    assert [word for word in marked.outside if word not in seen] == []


def test_no_answer_of_the_site_may_be_kept_by_a_cache(client: Client, marked: FullEvaluation) -> None:
    for user in (None, marked.owner, make_user("admin", is_superuser=True)):
        client.logout()
        if user is not None:
            client.force_login(user)
        keeps = [
            (method, door.name)
            for door in DOORS
            for method in METHODS
            if "no-store" not in ask(client, method, door.address(marked.evaluation.slug)).get("Cache-Control", "")
        ]
        assert keeps == []


@pytest.mark.parametrize("number", [2**63, 10**60])
def test_a_number_that_no_row_can_have_leads_nowhere(client: Client, marked: FullEvaluation, number: int) -> None:
    marked.owner.is_superuser = True
    marked.owner.save()
    client.force_login(marked.owner)
    numbered = [door for door in DOORS if {"pk", "delivery"} & set(door.parameters)]
    addresses = {door.name: door.address(marked.evaluation.slug, number) for door in numbered}
    answers = {(method, name): ask(client, method, one) for name, one in addresses.items() for method in METHODS}
    assert [key for key, answer in answers.items() if answer.status_code not in (404, 405)] == []


# ---- not signed in


def test_who_is_not_signed_in_is_asked_to(client: Client, marked: FullEvaluation) -> None:
    before = list(every_row())
    wrong = []
    for door in DOORS:
        for method in METHODS:
            answer = ask(client, method, door.address(marked.evaluation.slug))
            is_sent_away = answer.headers.get("Location", "").startswith(reverse("sign_in"))
            is_public = door.name in FOR_ALL_THE_WORLD and answer.status_code in OPENS_TO_ALL
            if (found(marked.outside, answer) and not is_sent_away) or not (is_sent_away or is_public):
                wrong.append((method, door.name, answer.status_code))
    assert wrong == []
    assert list(every_row()) == before


# ---- signed in, but no part of it


def test_a_stranger_cannot_tell_that_an_evaluation_exists(stranger: User, marked: FullEvaluation) -> None:
    """404 and word for word what an address says that belongs to no evaluation; 405 where the method is none."""
    client = sign_in_client(stranger)
    before = list(every_row())
    wrong: list[tuple[object, ...]] = []
    for door in INTO_AN_EVALUATION:
        answers = []
        for method in METHODS:
            real = ask(client, method, door.address(marked.evaluation.slug))
            unreal = ask(client, method, door.address("no-such-evaluation"))
            answers.append(real.status_code)
            if body(real) != body(unreal):
                wrong.append((method, door.name, "differs from an address that is none"))
        if 404 not in answers or not {404, 405} >= set(answers):
            wrong.append((*METHODS, door.name, answers))
    assert wrong == []
    assert list(every_row()) == before


def test_pages_of_the_site_tell_a_stranger_nothing(stranger: User, marked: FullEvaluation) -> None:
    wrong = []
    for door in OF_THE_SITE:
        for method in METHODS:
            answer = ask(sign_in_client(stranger), method, door.address())
            closed = answer.status_code in (404, 405)
            if found(marked.outside, answer) or (door.name in FOR_ADMINISTRATORS and not closed):
                wrong.append((method, door.name, answer.status_code))
    assert wrong == []


def test_a_site_administrator_sees_no_evaluation_that_is_not_theirs(client: Client, marked: FullEvaluation) -> None:
    client.force_login(make_user("admin", is_superuser=True))
    addresses = [door.address(marked.evaluation.slug) for door in INTO_AN_EVALUATION]
    answers = {(method, one): ask(client, method, one).status_code for one in addresses for method in METHODS}
    assert [key for key, status in answers.items() if status not in (404, 405)] == []


def test_rows_of_another_evaluation_cannot_be_reached_through_ones_own(client: Client, marked: FullEvaluation) -> None:
    mine = make_full_evaluation(OTHER_NUMBER)
    client.force_login(mine.owner)
    before = theirs()
    wrong = []
    for door in INTO_AN_EVALUATION:
        address = door.address(mine.evaluation.slug, number=NUMBER)
        for method in METHODS:
            answer = ask(client, method, address, query_params=FOREIGN)
            closed = answer.status_code in (404, 405)
            if found(marked.outside, answer) or ("pk" in door.parameters and not closed):
                wrong.append((method, door.name, answer.status_code))
    assert wrong == []
    assert theirs() == before


def theirs() -> list[dict[str, object]]:
    numbers = range(NUMBER, NUMBER + 10)
    return [row for _, rows in every_row() for row in rows if row.get("id") in numbers]


# ---- blind until the first save


@pytest.mark.parametrize("reveal", [Reveal.BLIND, Reveal.NEVER])
def test_a_reviewer_is_blind_through_every_door(client: Client, marked: FullEvaluation, reveal: Reveal) -> None:
    Evaluation.objects.update(reveal=reveal)
    client.force_login(make_member(marked.evaluation, Role.REVIEWER))
    assert words_seen(client, marked.evaluation, marked.hidden) == []


def test_where_judges_are_never_shown_saving_reveals_none_of_their_words(
    client: Client, marked: FullEvaluation
) -> None:
    Evaluation.objects.update(reveal=Reveal.NEVER)
    reviewer = make_member(marked.evaluation, Role.REVIEWER)
    rater = Rater.objects.create(evaluation=marked.evaluation, kind="human", name="me", user=reviewer)
    make_review(rater, Comparison.objects.get(pk=NUMBER), {"clarity": "A"})
    client.force_login(reviewer)
    words = tuple(word for word in marked.hidden if word.startswith(("rationale", "reply", "error")))
    assert words_seen(client, marked.evaluation, words) == []


def words_seen(client: Client, evaluation: Evaluation, words: tuple[str, ...]) -> list[tuple[str, object]]:
    """Which of them stand behind which door, however it is asked; and whatever failed on the way."""
    seen: list[tuple[str, object]] = []
    for door in INTO_AN_EVALUATION:
        for query in WAYS_TO_ASK:
            answer = ask(client, "get", door.address(evaluation.slug), query_params=query)
            seen += [(door.name, word) for word in found(words, answer)]
            if answer.status_code not in {*OPENS, 403, 404, 422}:
                seen.append((door.name, answer.status_code))
    return seen
