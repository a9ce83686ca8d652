"""The combinations of database and broker that the faults are tried on, each on servers of its own."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import amqp
import psycopg
import redis

from tests.helpers.own_servers import (
    Server,
    TcpProxy,
    build_postgres,
    build_rabbitmq,
    build_redis,
    control_rabbitmq,
    running,
)

EMBEDDED: Final = "SQLite, files"
REDIS: Final = "PostgreSQL, Redis"
RABBITMQ: Final = "PostgreSQL, RabbitMQ"
COMBINATIONS: Final = {"embedded": EMBEDDED, "redis": REDIS, "rabbitmq": RABBITMQ}
QUEUE: Final = "judgeweb"
DATABASE: Final = "site"


@dataclass
class Servers:
    """A database server, and a broker behind a proxy; None where files do their work."""

    combination: str
    database: Server | None = None
    broker: Server | None = None
    proxy: TcpProxy | None = None
    database_name: str = DATABASE

    @property
    def environment(self) -> dict[str, str]:
        return {"DATABASE_URL": self.database_url(self.database_name), "CELERY_BROKER_URL": self.broker_url}

    @property
    def broker_url(self) -> str:
        if self.proxy is None:
            return ""
        scheme, path = ("redis://", "/0") if self.combination == REDIS else ("amqp://guest:guest@", "//")
        return f"{scheme}127.0.0.1:{self.proxy.port}{path}"

    def database_url(self, name: str) -> str:
        return f"postgres://postgres@127.0.0.1:{self.database.port}/{name}" if self.database else ""

    def make_database(self, name: str) -> None:
        if self.database:
            with psycopg.connect(self.database_url("postgres"), autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}".encode())

    def cut_database_connections(self) -> int:
        """Cut all connections of the site to its database, and return how many there were."""
        with psycopg.connect(self.database_url("postgres"), autocommit=True) as connection:
            statement = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = %s"
            row = connection.execute(statement, [self.database_name]).fetchone()
            assert row is not None
            return int(row[0])

    def empty_broker(self, data_dir: Path) -> None:
        if self.broker is None:
            for path in (data_dir / "broker").rglob("*.*"):
                path.unlink(missing_ok=True)
        elif self.combination == REDIS:
            with redis.Redis(port=self.broker.port) as server:
                server.flushall()
        else:
            control_rabbitmq(self.broker, "delete_queue", QUEUE)

    def cut_broker_connections(self) -> None:
        """Cut them on the way; RabbitMQ closes those that are made again, with its own words."""
        assert self.proxy is not None
        assert self.broker is not None
        self.proxy.cut()
        if self.combination == RABBITMQ:
            control_rabbitmq(self.broker, "close_all_connections", "a fault of the test")

    def put_into_queue(self, data_dir: Path, messages: list[bytes]) -> None:
        if self.broker is None:
            for number, message in enumerate(messages):
                (data_dir / "broker" / f"{number}_poison.{QUEUE}.msg").write_bytes(message)
        elif self.combination == REDIS:
            with redis.Redis(port=self.broker.port) as server:
                for queue in (QUEUE, f"{QUEUE}:{QUEUE}"):
                    server.lpush(queue, *messages)
        else:
            with amqp.Connection(f"127.0.0.1:{self.broker.port}") as connection:
                channel = connection.channel()
                for message in messages:
                    channel.basic_publish(amqp.Message(message, content_type="application/json"), routing_key=QUEUE)


@contextmanager
def running_servers(combination: str, folder: Path) -> Iterator[Servers]:
    """Start the servers of a combination. Skips the test where a program is not installed."""
    servers = Servers(combination)
    with ExitStack() as stack:
        if combination != EMBEDDED:
            servers.database = stack.enter_context(running(build_postgres(folder)))
            build = build_redis if combination == REDIS else build_rabbitmq
            servers.broker = stack.enter_context(running(build(folder)))
            servers.proxy = TcpProxy(servers.broker.port)
            stack.callback(servers.proxy.close)
        servers.make_database(servers.database_name)
        yield servers
