"""``manage.py rotate_encryption_keys``"""

from django.core.management.base import CommandError

from evaluations.judges.endpoints.key_encryption import rotate_keys
from evaluations.management.product_command import ProductCommand


class Command(ProductCommand):
    help = (
        "Encrypt all stored API keys with the first of JUDGEWEB_ENCRYPTION_KEYS, or with a new key in the data folder "
        "where it is not set."
    )

    def handle(self, *args: object, **options: object) -> None:
        count, unreadable = rotate_keys()
        self.stdout.write(f"{count} stored API key{'' if count == 1 else 's'} encrypted with the first encryption key.")
        if unreadable:
            names = ", ".join(f"“{endpoint.name}”" for endpoint in unreadable)
            raise CommandError(
                f"Not readable here: {names}. Add the old encryption key to JUDGEWEB_ENCRYPTION_KEYS, or store these "
                "API keys again."
            )
