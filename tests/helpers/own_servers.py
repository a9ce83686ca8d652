"""Servers of a test's own, to be cut off, stopped and emptied: a TCP proxy, PostgreSQL, Redis, RabbitMQ."""

import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.helpers.running_product import free_port

START_SECONDS: Final = 60.0
RABBITMQ_FOLDER: Final = Path("/usr/lib/rabbitmq/bin")


def find_program(name: str, *folders: Path) -> Path:
    """A program on the PATH or in one of the folders. Skips the test where there is none."""
    for folder in folders:
        if (found := folder / name).exists():
            return found
    if on_path := shutil.which(name):
        return Path(on_path)
    pytest.skip(f"{name} is not installed")


def is_listening(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def wait_until(ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        assert time.monotonic() < deadline, f"{what} did not happen within {START_SECONDS:.0f} s"
        time.sleep(0.05)


class TcpProxy:
    """Stands between the product and a server: connections can be cut, refused, or go silent."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.sockets: set[socket.socket] = set()
        self.is_silent = self.is_refusing = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                if self.is_refusing:
                    reset(client)
                    continue
                try:
                    server = socket.create_connection(("127.0.0.1", self.target))
                except OSError:
                    reset(client)
                    continue
                self.sockets |= {client, server}
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self.pass_on, args=(source, sink), daemon=True).start()

    def pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if not self.is_silent:
                    sink.sendall(data)
        for end in (source, sink):
            self.sockets.discard(end)
            reset(end)

    def cut(self) -> None:
        """Cut all connections; new ones are accepted."""
        for end in list(self.sockets):
            reset(end)

    def refuse(self) -> None:
        """Cut all connections and refuse new ones."""
        self.is_refusing = True
        self.cut()

    def go_silent(self) -> None:
        """Keep all connections, and let nothing through."""
        self.is_silent = True

    def recover(self) -> None:
        self.is_refusing, was_silent, self.is_silent = False, self.is_silent, False
        if was_silent:
            self.cut()  # what was swallowed is missing

    def close(self) -> None:
        self.refuse()
        self.listener.close()


def reset(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@dataclass
class Server:
    """A server process on a port of its own. ``stop`` and ``kill`` keep its data."""

    name: str
    port: int
    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    user: str | None = None  # root may not run PostgreSQL
    stop_signal: signal.Signals = signal.SIGTERM
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self.user,
                start_new_session=True,
            )
        wait_until(lambda: self.is_dead() or is_listening(self.port), f"the start of {self.name}")
        assert not self.is_dead(), (self.folder / f"{self.name}.log").read_text()[-2000:]

    def is_dead(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def stop(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, self.stop_signal)
            try:
                self.process.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@contextmanager
def running(server: Server) -> Iterator[Server]:
    server.start()
    try:
        yield server
    finally:
        server.kill()


def build_redis(folder: Path) -> Server:
    port = free_port()
    command = [str(find_program("redis-server")), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    return Server("redis", port, command, folder, {})


def build_rabbitmq(folder: Path) -> Server:
    """Its queues last over a restart, and its node is known by its port."""
    program, port = find_program("rabbitmq-server", RABBITMQ_FOLDER), free_port()
    (folder / "rabbitmq.conf").write_text(f"listeners.tcp.1 = 127.0.0.1:{port}\n")
    return Server("rabbitmq", port, [str(program)], folder, rabbitmq_environment(folder, port))


def rabbitmq_environment(folder: Path, port: int) -> dict[str, str]:
    return {
        "HOME": str(folder),
        "RABBITMQ_NODENAME": f"judgeweb{port}@localhost",
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_CONF_ENV_FILE": os.devnull,
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
    }


def control_rabbitmq(server: Server, *arguments: str) -> str:
    """Run `rabbitmqctl` at this node."""
    program = find_program("rabbitmqctl", RABBITMQ_FOLDER)
    node = server.environment["RABBITMQ_NODENAME"]
    environment = {**os.environ, **server.environment}
    run = subprocess.run([str(program), "-n", node, *arguments], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def build_postgres(folder: Path) -> Server:
    """A fresh cluster of the user `postgres`, who needs no password."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    data, port = folder / "postgres", free_port()
    user = "postgres" if os.geteuid() == 0 else None
    data.mkdir()
    if user:
        shutil.chown(data, user)
        folder.chmod(0o755)
    make = [str(find_program("initdb", *installed)), "-D", str(data), "-U", "postgres", "--auth=trust", "--no-sync"]
    subprocess.run(make, user=user, cwd="/", check=True, stdout=subprocess.DEVNULL)
    options = {"port": str(port), "listen_addresses": "127.0.0.1", "unix_socket_directories": str(data), "fsync": "off"}
    program = str(find_program("postgres", *installed))
    command = [program, "-D", str(data), *(f"--{name}={value}" for name, value in options.items())]
    # SIGINT: cut the connections and end in order.
    return Server("postgres", port, command, folder, {}, user=user, stop_signal=signal.SIGINT)
