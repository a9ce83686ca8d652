"""``manage.py api_token USER --name …``: a token for a program, printed once; or ``--revoke`` one."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evaluations.domain import SCOPES_IN_WORDS, InputRefused, Scope
from evaluations.models import Evaluation, User
from evaluations.services.preparing.admitting import in_force, make_token, revoke_token
from evaluations.services.preparing.inviting import find_account


class Command(BaseCommand):
    help = "Make a token with which a program speaks to the API in USER's name, and print it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        scopes = "; ".join(f"{scope}: {words}" for scope, words in SCOPES_IN_WORDS.items())
        parser.add_argument("username", metavar="USER")
        parser.add_argument("--name", default="", help="what it is for")
        parser.add_argument("--scope", nargs="+", choices=[str(scope) for scope in Scope], help=scopes)
        parser.add_argument("--days", type=int, default=90, help="how long it is valid (90)")
        parser.add_argument("--evaluation", metavar="SLUG", help="the only evaluation that it opens")
        one = parser.add_mutually_exclusive_group()
        one.add_argument("--list", action="store_true", help="the tokens of USER that are in force")
        one.add_argument("--revoke", metavar="PREFIX", help="revoke those that begin with this")

    def handle(self, *args: Any, username: str, **options: Any) -> None:
        try:
            user = account(username)
            if options["list"]:
                said = listed(user)
            else:
                said = revoked(user, options["revoke"]) if options["revoke"] else made(user, options)
        except InputRefused as refused:
            raise CommandError(str(refused)) from refused
        self.stdout.write(said)


def account(username: str) -> User:
    user = find_account(username)
    if user is None or not user.is_active:
        raise InputRefused(f"There is no account “{username}” that is enabled.")
    return user


def made(user: User, options: dict[str, Any]) -> str:
    evaluation = None
    if slug := options["evaluation"]:
        evaluation = Evaluation.objects.of(user).filter(slug=slug).first()
        if evaluation is None:
            raise InputRefused(f"{user.username} takes part in no evaluation at “{slug}”.")
    scopes = [Scope(one) for one in options["scope"] or [Scope.READ]]
    _, text = make_token(user, name=options["name"], scopes=scopes, days=options["days"], evaluation=evaluation)
    return text


def listed(user: User) -> str:
    lines = [
        f"{token.prefix}…  {token.name}  {token.scopes}  until {token.expires_at:%Y-%m-%d}" for token in in_force(user)
    ]
    return "\n".join(lines) or f"{user.username} has no token that is in force."


def revoked(user: User, prefix: str) -> str:
    found = [token for token in in_force(user) if token.prefix == prefix.rstrip("…")]
    if not found:
        raise InputRefused(f"{user.username} has no token that begins with “{prefix}”: see --list.")
    for token in found:
        revoke_token(token, by=None)
    return f"Revoked: {', '.join(token.name for token in found)}"
