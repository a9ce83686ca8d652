"""``manage.py sign_in_link USER``: the way in where nobody else can make one."""

from argparse import ArgumentParser
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.urls import reverse

from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import Role
from evaluations.management.product_command import CommandOptions, ProductCommand, find_evaluation
from evaluations.members.selectors import find_account
from evaluations.members.services import create_account, create_sign_in_link, make_administrator, set_role
from evaluations.models.users import User


class Command(ProductCommand):
    help = "Print a one-time sign-in link for USER."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", metavar="USER")
        parser.add_argument("--create", action="store_true", help="create the account if needed")
        parser.add_argument("--superuser", action="store_true", help="make USER a site administrator")
        parser.add_argument("--evaluation", metavar="SLUG", help="add USER to this evaluation")
        parser.add_argument("--role", choices=[str(role) for role in Role], help="role of USER (with --evaluation)")
        parser.add_argument("--base-url", default=settings.ADDRESS, help=f"site URL (default: {settings.ADDRESS})")

    def handle(self, *args: object, **options: Any) -> None:
        with transaction.atomic():
            base_url = sign_in_address(options["base_url"])
            token = create_sign_in_link(find_or_invite_account(options), by=None)
        self.stdout.write(base_url + reverse("sign_in_link", args=[token]))


def find_or_invite_account(options: CommandOptions) -> User:
    """The account as the options want it: made, given a role, made an administrator."""
    if (options["evaluation"] is None) != (options["role"] is None):
        raise InputRefused("Use --evaluation and --role together.")
    evaluation = find_evaluation(options["evaluation"]) if options["evaluation"] else None
    user = find_account(options["username"])
    if user is None and not options["create"]:
        raise InputRefused(f"No account “{options['username']}”. Add --create to create it.")
    if user is None:
        user = create_account(options["username"], by=None, evaluation=evaluation)
    if evaluation is not None:
        set_role(evaluation, user, Role(options["role"]), by=None)
    if options["superuser"]:
        make_administrator(user)
    return user


def sign_in_address(base_url: str) -> str:
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputRefused(f"--base-url {base_url!r} is not a URL such as https://judgeweb.example.org.")
    return base_url.rstrip("/")
