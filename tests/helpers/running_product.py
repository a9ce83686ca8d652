"""The real product as a process with a data folder of its own."""

import itertools
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

ROOT = Path(__file__).parents[2]
# Logical databases of a Redis server, so that two products at once do not take each other's messages.
_redis_databases = itertools.cycle(range(1, 16))


@dataclass
class Product:
    """A running product: where it answers, and the one sign-in link it announced."""

    process: subprocess.Popen[str]
    environment: Mapping[str, str]
    data_dir: Path
    address: str
    said: list[str] = field(default_factory=list)
    commands: subprocess.Popen[str] | None = None

    @property
    def link(self) -> str:
        """The announced link. It works once: only one test may use it."""
        return next(word for line in self.said for word in line.split() if "/sign-in/" in word)

    def new_link(self) -> str:
        return self.manage("sign_in_link", "owner").stdout.split()[-1]

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """As `manage` with the product's environment, without starting Python anew."""
        if self.commands is None:
            self.commands = warm_commands(self.environment)
        assert self.commands.stdin is not None
        assert self.commands.stdout is not None
        self.commands.stdin.write(f"{json.dumps(arguments)}\n")
        self.commands.stdin.flush()
        result = json.loads(self.commands.stdout.readline())
        return succeeded(subprocess.CompletedProcess(arguments, **result))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def environment_for(data_dir: Path, **extra: str) -> dict[str, str]:
    """The tests' own environment without their settings, on that data folder and a free port."""
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    environment |= {"JUDGEWEB_DATA_DIR": str(data_dir), "PORT": str(free_port()), "PYTHONUNBUFFERED": "1"}
    # Workers that give way would starve behind the other tests.
    environment["JUDGEWEB_WORKER_NICENESS"] = "0"
    if os.environ.get("CELERY_BROKER_URL", "").startswith("redis"):
        environment["CELERY_BROKER_URL"] = (
            urlsplit(os.environ["CELERY_BROKER_URL"])._replace(path=f"/{next(_redis_databases)}").geturl()
        )
    return environment | extra


def launch(environment: Mapping[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "judgeweb.serving"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def start(environment: Mapping[str, str]) -> Product:
    """Launch it and read what it says until it is ready."""
    process = launch(environment)
    product = Product(
        process, environment, Path(environment["JUDGEWEB_DATA_DIR"]), f"http://127.0.0.1:{environment['PORT']}"
    )
    assert process.stdout is not None
    for line in process.stdout:
        product.said.append(line.strip())
        if line.startswith("Logs:"):
            return product
    raise AssertionError("the product did not start: " + "\n".join(product.said[-5:]))


def warm_commands(environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """It ends with its standard input."""
    command = [sys.executable, "-m", "tests.warm_commands"]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def stop(product: Product) -> int:
    if product.commands is not None:
        product.commands.communicate()
    product.process.send_signal(signal.SIGINT)
    return product.process.wait(timeout=40)


def manage(environment: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a management command.

    Raises:
        subprocess.CalledProcessError: it failed; pytest shows what it said.
    """
    command = [sys.executable, "manage.py", *arguments]
    return succeeded(subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True))


def succeeded(run: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    sys.stderr.write(run.stderr)
    run.check_returncode()
    return run


@contextmanager
def own_database() -> Iterator[dict[str, str]]:
    """The environment of a fresh database: a file in the data folder, or a new one on a PostgreSQL server."""
    server = os.environ.get("DATABASE_URL", "")
    if not server.startswith("postgres"):
        yield {"DATABASE_URL": ""}
        return
    name = f"judgeweb_product_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
        try:
            yield {"DATABASE_URL": urlsplit(server)._replace(path=f"/{name}").geturl()}
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def processes_of(data_dir: Path) -> dict[int, str]:
    """Every living process of that product, orphans included: pid → command line."""
    commands = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"JUDGEWEB_DATA_DIR={data_dir}\0".encode() in (folder / "environ").read_bytes():
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
                if command:  # empty: dead already, and not yet waited for
                    commands[int(folder.name)] = command
    return commands
