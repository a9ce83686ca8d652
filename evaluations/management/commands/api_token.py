"""``manage.py api_token USER --name …``: a token for a program, printed once; or ``--revoke`` one."""

from argparse import ArgumentParser
from typing import Any

from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import SCOPE_TEXTS, Scope
from evaluations.management.product_command import CommandOptions, ProductCommand
from evaluations.members.selectors import find_account, list_active_tokens
from evaluations.members.services import create_token, revoke_token
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User


class Command(ProductCommand):
    help = "Create an API token for USER and print it once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        scopes = "; ".join(f"{scope}: {words}" for scope, words in SCOPE_TEXTS.items())
        parser.add_argument("username", metavar="USER")
        parser.add_argument("--name", default="", help="what the token is for")
        parser.add_argument("--scope", nargs="+", choices=[str(scope) for scope in Scope], help=scopes)
        parser.add_argument("--days", type=int, default=90, help="days until it expires (default: 90)")
        parser.add_argument("--evaluation", metavar="SLUG", help="limit it to this evaluation")
        group = parser.add_mutually_exclusive_group()
        group.add_argument("--list", action="store_true", help="list USER's active tokens")
        group.add_argument("--revoke", metavar="PREFIX", help="revoke the tokens that start with PREFIX")

    def handle(self, *args: object, username: str, **options: Any) -> None:
        user = require_account(username)
        if options["list"]:
            self.stdout.write(list_token_lines(user))
        elif options["revoke"]:
            self.stdout.write(revoke_by_prefix(user, options["revoke"]))
        else:
            self.stdout.write(create_token_line(user, options))


def require_account(username: str) -> User:
    user = find_account(username)
    if user is None or not user.is_active:
        raise InputRefused(f"No enabled account “{username}”.")
    return user


def create_token_line(user: User, options: CommandOptions) -> str:
    evaluation = None
    if slug := options["evaluation"]:
        evaluation = Evaluation.objects.of(user).filter(slug=slug).first()
        if evaluation is None:
            raise InputRefused(f"{user.username} is not a member of “{slug}”.")
    scopes = [Scope(scope) for scope in options["scope"] or [Scope.READ]]
    _, text = create_token(user, name=options["name"], scopes=scopes, days=options["days"], evaluation=evaluation)
    return text


def list_token_lines(user: User) -> str:
    lines = [
        f"{token.prefix}…  {token.name}  {token.scopes}  until {token.expires_at:%Y-%m-%d}"
        for token in list_active_tokens(user)
    ]
    return "\n".join(lines) or f"{user.username} has no active tokens."


def revoke_by_prefix(user: User, prefix: str) -> str:
    tokens = [token for token in list_active_tokens(user) if token.prefix == prefix.rstrip("…")]
    if not tokens:
        raise InputRefused(f"{user.username} has no token that starts with “{prefix}”. Use --list to see the tokens.")
    for token in tokens:
        revoke_token(token, by=None)
    return f"Revoked: {', '.join(token.name for token in tokens)}"
