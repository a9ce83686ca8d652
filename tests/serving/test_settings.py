"""A value that cannot be used stops the start and is named in one line."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from judgeweb.environment import (
    load_or_create_secret,
    read_env_file,
    read_flag,
    read_networks,
    read_ollama_url,
    read_site_address,
    read_whole_number,
)
from tests.helpers import running_product
from tests.helpers.running_product import environment_for

pytestmark = pytest.mark.any_database

ROOT = running_product.ROOT
# Only while developing or testing, and for other people's programs.
NOT_OURS = {"OPENAI_API_KEY"}


def test_the_example_file_lists_every_setting_and_no_other() -> None:
    source = "".join((ROOT / "judgeweb" / name).read_text() for name in ("settings.py", "environment.py"))
    read = set(
        re.findall(
            r"(?:environ\.get|read_whole_number|read_flag|names|networks|read_site_address|read_broker_url|queue_prefix|contact|encryption_keys)"
            r'\("(\w+)"',
            source,
        )
    )
    listed = set(re.findall(r"^#?([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE))
    assert listed - NOT_OURS == read


@pytest.mark.parametrize("given", ["x", "-1", "0", "65536", "8000.0"])
def test_a_number_out_of_range_is_named(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", given)
    with pytest.raises(ImproperlyConfigured, match="PORT must be a whole number from 1"):
        read_whole_number("PORT", 8000, 1, 65535)


def test_a_network_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGEWEB_WEBHOOK_NETWORKS", "10.0.0.0/8, 10.0.0.1/8")
    with pytest.raises(ImproperlyConfigured, match="JUDGEWEB_WEBHOOK_NETWORKS must be networks"):
        read_networks("JUDGEWEB_WEBHOOK_NETWORKS")


def test_yes_or_no_is_one_or_nought(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGEWEB_DEBUG", "true")
    with pytest.raises(ImproperlyConfigured, match="JUDGEWEB_DEBUG must be 0 or 1"):
        read_flag("JUDGEWEB_DEBUG")


@pytest.mark.parametrize("given", ["judge.example.org", "ftp://x", "https://x/path", "https://", "http://x:123456"])
def test_an_address_is_scheme_host_and_port(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGEWEB_ADDRESS", given)
    with pytest.raises(ImproperlyConfigured, match="must look like https://"):
        read_site_address("JUDGEWEB_ADDRESS", "")


def test_a_local_server_is_looked_for_where_it_is_said_to_be_and_nowhere_where_that_is_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("JUDGEWEB_OLLAMA_URL", raising=False)
    assert read_ollama_url() == "http://127.0.0.1:11434"
    for given, taken in (("http://gpu:8080/", "http://gpu:8080"), ("", "")):
        monkeypatch.setenv("JUDGEWEB_OLLAMA_URL", given)
        assert read_ollama_url() == taken
    monkeypatch.setenv("JUDGEWEB_OLLAMA_URL", "gpu:8080/v1")
    with pytest.raises(ImproperlyConfigured, match="must look like http://127"):
        read_ollama_url()


def test_an_empty_value_means_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "")
    assert read_whole_number("PORT", 8000, 1, 65535) == 8000


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGEWEB_ONE", "environment")
    monkeypatch.setenv("JUDGEWEB_TWO", "")  # so that it is taken away again
    monkeypatch.delenv("JUDGEWEB_TWO")
    (tmp_path / ".env").write_text("# a comment\n\nJUDGEWEB_ONE=file\nJUDGEWEB_TWO=a=b c \n")
    read_env_file(tmp_path / ".env")
    assert (os.environ["JUDGEWEB_ONE"], os.environ["JUDGEWEB_TWO"]) == ("environment", "a=b c")


def test_a_line_of_the_file_that_is_no_setting_is_named_by_its_number_alone(tmp_path: Path) -> None:
    """The line may hold a key."""
    (tmp_path / ".env").write_text("# fine\nexport OPENAI_API_KEY=sk-secret\n")
    with pytest.raises(ImproperlyConfigured, match="line 2: it must be NAME=value") as refused:
        read_env_file(tmp_path / ".env")
    assert "sk-secret" not in str(refused.value)


def test_a_secret_is_made_once_and_kept_from_others(tmp_path: Path) -> None:
    first = load_or_create_secret(tmp_path / "secret_key")
    assert len(first) >= 50
    assert load_or_create_secret(tmp_path / "secret_key") == first
    assert (tmp_path / "secret_key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("PORT", "eighty", "PORT must be a whole number from 1 to 65535."),
        ("DATABASE_URL", "mysql://u:secret@h/d", "only sqlite and postgres are supported"),
        ("DATABASE_URL", "postgres://u:secret@h:port/d", "it must look like sqlite:///path or postgres://"),
        ("CELERY_BROKER_URL", "memory://", "CELERY_BROKER_URL must begin with filesystem://"),
        ("JUDGEWEB_TIME_ZONE", "Berlin", "JUDGEWEB_TIME_ZONE is no time zone that is known"),
        ("JUDGEWEB_DATA_DIR", "/dev/null/x", "JUDGEWEB_DATA_DIR is not writable"),
        ("JUDGEWEB_WEB_THREADS", "sk-secret", "JUDGEWEB_WEB_THREADS must be a whole number"),
        ("JUDGEWEB_ADDRESS", "https://u:secret@judge.example.org", "JUDGEWEB_ADDRESS must look like"),
        ("JUDGEWEB_QUEUE_PREFIX", "secret.*", "JUDGEWEB_QUEUE_PREFIX must be 1 to 40 of"),
        ("JUDGEWEB_WEBHOOK_NETWORKS", "secret", "JUDGEWEB_WEBHOOK_NETWORKS must be networks"),
        ("CELERY_BROKER_URL", "redis://secret@127.0.0.1:1/0", "has a user without a password"),
        ("CELERY_BROKER_URL", "redis://127.0.0.1:1/secret", "must end in the number of a database"),
        ("CELERY_BROKER_URL", "amqp://u:pass/secret@127.0.0.1:1//", "cannot be read: write /"),
        ("CELERY_BROKER_URL", "filesystem://secret@x", "must be filesystem://localhost"),
    ],
)
@pytest.mark.parametrize("command", [["manage.py", "check"], ["-m", "judgeweb.serving"]], ids=["manage.py", "make run"])
def test_a_bad_value_stops_the_start_with_one_line(
    command: list[str], name: str, given: str, says: str, tmp_path: Path
) -> None:
    environment = environment_for(tmp_path) | {name: given}
    run = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True)
    (line,) = (run.stdout + run.stderr).splitlines()
    assert run.returncode == 1
    assert line.startswith("judgeweb stopped: ")
    assert says in line
    assert "secret" not in line


def test_postgresql_ends_what_stands_still_in_a_transaction_and_the_address_may_say_otherwise(tmp_path: Path) -> None:
    options = read_database_options(tmp_path, "postgres://judgeweb@db.example.org/judgeweb")["options"]
    limits = dict(re.findall(r"-c (\w+)=(\w+)", options))
    assert limits["jit"] == "off"
    assert limits["idle_in_transaction_session_timeout"] == "60s"
    assert {"tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count"} <= limits.keys()
    other = read_database_options(tmp_path, "postgres://judgeweb@db.example.org/judgeweb?options=-c%20jit%3Don")
    assert other["options"] == "-c jit=on"


def test_nobody_waits_long_for_a_postgresql_that_is_gone_and_the_address_may_say_otherwise(tmp_path: Path) -> None:
    options = read_database_options(tmp_path, "postgres://judgeweb@db.example.org/judgeweb?connect_timeout=30")
    assert int(options["connect_timeout"]) == 30
    options = read_database_options(tmp_path, "postgres://judgeweb@db.example.org/judgeweb")
    assert options["connect_timeout"] == 5
    silent = options["keepalives_idle"] + options["keepalives_interval"] * options["keepalives_count"]
    assert silent == 60
    assert options["tcp_user_timeout"] == 30_000


def read_database_options(tmp_path: Path, address: str) -> dict[str, Any]:
    code = "import json; from judgeweb.settings import DATABASES; print(json.dumps(DATABASES['default']['OPTIONS']))"
    environment = environment_for(tmp_path, DATABASE_URL=address)
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    return dict(json.loads(run.stdout))
