"""API keys of endpoints as they are stored: encrypted with Fernet, and decrypted for a request only.

The keys that encrypt come from JUDGEWEB_ENCRYPTION_KEYS, else from a file in the data folder, one a line. The first one
encrypts, all of them decrypt.
"""

import os
import tempfile
from pathlib import Path
from typing import Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

from evaluations.domain.errors import InputRefused
from evaluations.domain.secrets import is_variable_name
from evaluations.models.judges import Endpoint
from judgeweb.environment import load_or_create_secret

MAX_KEY_LENGTH: Final = 2_000
NOT_READABLE: Final = (
    "The stored API key of this endpoint cannot be decrypted here. Set the same JUDGEWEB_ENCRYPTION_KEYS for the web "
    "server and all workers, or store the API key again."
)


def check_api_key(key: str) -> str:
    """The API key as a header sends it; InputRefused, without the key, if it is none."""
    key = key.strip()
    if key.lower().startswith("bearer "):
        key = key[len("bearer ") :].strip()
    if is_variable_name(key):
        raise InputRefused(
            "This is the name of an environment variable. Enter it as the API key variable, or paste the key itself.",
            field="api_key",
        )
    if not (key and key.isascii() and key.isprintable() and " " not in key and len(key) <= MAX_KEY_LENGTH):
        raise InputRefused(
            f"An API key has 1 to {MAX_KEY_LENGTH:,} printable ASCII characters and no spaces. Copy it again.",
            field="api_key",
        )
    return key


def encrypt_key(key: str) -> str:
    """The API key as a Fernet token. The first one that is stored creates the file of encryption keys."""
    if not load_encryption_keys():
        load_or_create_secret(settings.ENCRYPTION_KEY_FILE, lambda: Fernet.generate_key().decode())
    return build_fernet(load_encryption_keys()).encrypt(key.encode()).decode()


def decrypt_key(token: str) -> str:
    """The API key in a token; InputRefused if no encryption key here can read it."""
    try:
        return build_fernet(load_encryption_keys()).decrypt(token.encode()).decode()
    except (InvalidToken, ValueError):
        raise InputRefused(NOT_READABLE) from None


def load_encryption_keys() -> list[str]:
    """The keys of the setting, then those of the file, so that a site can move from the file to the setting."""
    file: Path = settings.ENCRYPTION_KEY_FILE
    return [*settings.ENCRYPTION_KEYS, *(file.read_text().split() if file.exists() else ())]


def build_fernet(keys: list[str]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])


def is_key_readable(endpoint: Endpoint) -> bool:
    """Whether the endpoint's stored key can be decrypted here; True if none is stored."""
    try:
        return not endpoint.encrypted_key or bool(decrypt_key(endpoint.encrypted_key))
    except InputRefused:
        return False


def rotate_keys() -> tuple[int, list[Endpoint]]:
    """Encrypt every stored key with the first encryption key: how many, and the endpoints that cannot be read.

    Without JUDGEWEB_ENCRYPTION_KEYS a new key is added to the file first, and the old ones leave it at the end.
    """
    is_in_file = not settings.ENCRYPTION_KEYS and settings.ENCRYPTION_KEY_FILE.exists()
    if is_in_file:
        write_key_file([Fernet.generate_key().decode(), *load_encryption_keys()])
    count, unreadable = 0, []
    for endpoint in Endpoint.objects.exclude(encrypted_key="").order_by("name"):
        token = endpoint.encrypted_key
        if not is_key_readable(endpoint):
            unreadable.append(endpoint)
            continue
        rotated = build_fernet(load_encryption_keys()).rotate(token.encode()).decode()
        # A key that is replaced meanwhile stays.
        count += Endpoint.objects.filter(pk=endpoint.pk, encrypted_key=token).update(encrypted_key=rotated)
    if is_in_file and not unreadable:
        write_key_file(load_encryption_keys()[:1])
    return count, unreadable


def write_key_file(keys: list[str]) -> None:
    """Replace the file at once, so that no process reads half of it; only this account may read it."""
    file: Path = settings.ENCRYPTION_KEY_FILE
    descriptor, draft = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(descriptor, "w") as output:
        output.write("\n".join(keys) + "\n")
    os.replace(draft, file)
