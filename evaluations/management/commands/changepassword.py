"""``manage.py changepassword USER``: like Django's command, and what let somebody in before ends."""

from argparse import ArgumentParser
from getpass import getpass
from typing import Any

from evaluations.domain.errors import InputRefused
from evaluations.management.product_command import ProductCommand
from evaluations.members.selectors import find_account
from evaluations.members.services import set_password


class Command(ProductCommand):
    help = "Set a new password for USER, and end all sessions, sign-in links and API tokens of the account."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username", metavar="USER")

    def handle(self, *args: object, **options: Any) -> None:
        user = find_account(options["username"])
        if user is None:
            raise InputRefused(f"There is no account “{options['username']}”.")
        password = getpass(f"New password of {user.username}: ")
        if getpass("Repeat the password: ") != password:
            raise InputRefused("The two passwords differ. Nothing was changed.")
        set_password(user, password, by=None)
        self.stdout.write(f"The password of {user.username} is set. Sessions, sign-in links, and tokens have ended.")
