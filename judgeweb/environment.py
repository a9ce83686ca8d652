"""What the settings read: environment variables, each checked and named if it cannot be used, and the data folder."""

import base64
import contextlib
import hashlib
import ipaddress
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured


def read_env_file(path: Path) -> None:
    """Take NAME=value lines into the environment; no quotes, no expansion."""
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        name, equals, value = line.partition("=")
        if not line.strip() or line.startswith("#"):
            continue
        if not equals or not name.isidentifier():
            raise ImproperlyConfigured(f"{path.name} line {number}: it must be NAME=value or a # comment.")
        os.environ.setdefault(name, value.strip())


def read_whole_number(name: str, default: int, low: int, high: int) -> int:
    value = os.environ.get(name, "") or str(default)
    if not value.isdecimal() or not low <= int(value) <= high:
        raise ImproperlyConfigured(f"{name} must be a whole number from {low} to {high}.")
    return int(value)


def read_flag(name: str) -> bool:
    value = os.environ.get(name, "") or "0"
    if value not in ("0", "1"):
        raise ImproperlyConfigured(f"{name} must be 0 or 1.")
    return value == "1"


def read_names(name: str) -> list[str]:
    return [part.strip() for part in os.environ.get(name, "").split(",") if part.strip()]


def read_networks(name: str) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    try:
        return [ipaddress.ip_network(network) for network in read_names(name)]
    except ValueError:
        raise ImproperlyConfigured(
            f"{name} must be networks, separated by commas, as in 10.0.0.0/8,127.0.0.1/32 (not 10.0.0.1/8)."
        ) from None


def read_site_address(name: str, default: str, like: str = "https://judgeweb.example.org") -> str:
    address = (os.environ.get(name, "") or default).rstrip("/")
    if not re.fullmatch(r"https?://[^\s/?#@:]+(:[1-9]\d{0,4})?", address):
        raise ImproperlyConfigured(f"{name} must look like {like}.")
    return address


def read_contact(name: str) -> str:
    contact = os.environ.get(name, "")
    if contact and not re.fullmatch(r"(mailto:[^\s@]+@[^\s@]+|https://[^\s]+)", contact):
        raise ImproperlyConfigured(
            f"{name} must look like mailto:security@example.org or https://example.org/security."
        )
    return contact


def read_broker_url(name: str) -> str:
    """Check the URL here, because Celery logs invalid URLs with their passwords."""
    url = os.environ.get(name, "") or "filesystem://localhost"
    try:
        parts = urlsplit(url)
        has_port = parts.port is not None  # read here, where it may be none
    except ValueError:
        raise ImproperlyConfigured(
            f"{name} cannot be read: write / # ? and @ of a password as %2F %23 %3F %40."
        ) from None
    if parts.scheme not in ("filesystem", "redis", "rediss", "amqp", "amqps"):
        raise ImproperlyConfigured(f"{name} must begin with filesystem://, redis://, rediss://, amqp:// or amqps://.")
    if parts.scheme == "filesystem" and (has_port or "@" in url):
        raise ImproperlyConfigured(f"{name} must be filesystem://localhost, or name a broker.")
    if parts.username and parts.password is None:
        raise ImproperlyConfigured(
            f"{name} has a user without a password: it must look like redis://:password@host:6379/0."
        )
    if parts.scheme.startswith("redis") and not (parts.path[1:] or "0").isdecimal():
        raise ImproperlyConfigured(f"{name} must end in the number of a database, as in redis://host:6379/0.")
    return url


def read_queue_prefix(name: str) -> str:
    prefix = os.environ.get(name, "")
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,39}|", prefix):
        raise ImproperlyConfigured(f"{name} must be 1 to 40 of a–z, 0–9, - and _, as in team-a.")
    return prefix


def read_ollama_url() -> str:
    """Where workers look for a local model server. An empty value disables it."""
    default = "http://127.0.0.1:11434"
    if os.environ.get("JUDGEWEB_OLLAMA_URL") == "":
        return ""
    return read_site_address("JUDGEWEB_OLLAMA_URL", default, like=default)


def read_encryption_keys(name: str) -> list[str]:
    """Fernet keys: 32 random bytes each, in URL-safe Base64."""
    keys = read_names(name)
    for key in keys:
        try:
            is_key = len(base64.urlsafe_b64decode(key)) == 32
        except ValueError:
            is_key = False
        if not is_key:
            raise ImproperlyConfigured(
                f"{name} must be Fernet keys, separated by commas. To make one: openssl rand -base64 32 | tr +/ -_"
            )
    return keys


def create_secret() -> str:
    return secrets.token_urlsafe(50)


def load_or_create_secret(path: Path, create: Callable[[], str] = create_secret) -> str:
    """The secret in the file, which the first start creates, readable by its owner alone.

    Several processes may start at once: each links a whole file into place, and the first one stays.
    """
    if not path.exists():
        descriptor, draft = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "w") as file:
            file.write(create())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        os.unlink(draft)
    return path.read_text().strip()


def find_shared_folder(data_dir: Path) -> Path:
    """A folder of this site in memory, of this account alone; in the data folder where there is none."""
    memory, name = Path("/dev/shm"), hashlib.sha256(str(data_dir).encode()).hexdigest()[:16]
    for folder in (memory / f"judgeweb-{os.getuid()}-{name}", data_dir / "metrics"):
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            if folder.stat().st_uid == os.getuid() and not folder.is_symlink():
                return folder
    raise ImproperlyConfigured("JUDGEWEB_DATA_DIR is not writable.")


def close_to_others(folder: Path) -> None:
    """Take the rights of other accounts from a folder of ours; not from one that all share, such as /tmp."""
    status = folder.stat()
    if status.st_uid == os.geteuid() and status.st_mode & 0o077 and not status.st_mode & stat.S_ISVTX:
        folder.chmod(0o700)
