"""``manage.py changepassword USER``: like Django's command, and what let somebody in before ends."""

from argparse import ArgumentParser
from getpass import getpass
from typing import Any

from evaluations.domain.errors import InputRefused
from evaluations.management.product_command import ProductCommand
from evaluations.members.selectors import find_account
from evaluations.members.services import set_password


class Command(ProductCommand):
    help = "Set USER's password, and end all sessions, sign-in links and API tokens of the account."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", metavar="USER")

    def handle(self, *args: object, **options: Any) -> None:
        user = find_account(options["username"])
        if user is None:
            raise InputRefused(f"No account “{options['username']}”.")
        password = getpass(f"New password for {user.username}: ")
        if getpass("Repeat password: ") != password:
            raise InputRefused("The two passwords don’t match. Nothing was changed.")
        set_password(user, password, by=None)
        self.stdout.write(f"Password of {user.username} set. All sessions, sign-in links and tokens ended.")
