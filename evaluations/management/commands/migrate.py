"""``manage.py migrate``: Django's own, which never touches a database of another version."""

from django.core.management.base import CommandError
from django.core.management.commands import migrate

from evaluations.models.migration_history import refusal_of_other_version


class Command(migrate.Command):
    def handle(self, *args: object, **options: object) -> None:
        if refusal := refusal_of_other_version():
            raise CommandError(refusal)
        super().handle(*args, **options)
