"""The one-command product, as a person at a terminal meets it."""

import http.cookiejar
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helpers.running_product import (
    ROOT,
    Product,
    environment_for,
    free_port,
    manage,
    own_database,
    processes_of,
    start,
    stop,
)

pytestmark = [
    pytest.mark.worker,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads the process list of Linux"),
]


@pytest.fixture
def own_product(tmp_path: Path) -> Iterator[Product]:
    """A product that this test may stop and kill."""
    with own_database() as database:
        product = start(environment_for(tmp_path, **database))
        yield product
        product.process.kill()
        product.process.wait()


def eventually(true: Callable[[], bool], seconds: float = 30) -> bool:
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.1)
    return true()


def get(url: str) -> tuple[int, str]:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.status, answer.read().decode()


def child(product: Product, word: str) -> int | None:
    return next((pid for pid, command in processes_of(product.data_dir).items() if word in command), None)


def run_serving(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "judgeweb.serving"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)


def test_it_says_in_a_handful_of_lines_where_it_is_and_answers_there(product: Product) -> None:
    assert len(product.said) <= 5
    assert f"judgeweb is ready at {product.address}" in product.said
    status, said = get(f"{product.address}/healthz")
    assert (status, said.splitlines()[0]) == (200, "ok")
    # The worker is a process of its own, and on a busy machine it comes up after the pages.
    assert eventually(lambda: get(f"{product.address}/healthz") == (200, "ok\n"), seconds=60)


def test_web_and_worker_are_processes_of_their_own(product: Product) -> None:
    commands = " ".join(processes_of(product.data_dir).values())
    assert "gunicorn" in commands
    assert "judgeweb worker" in commands
    assert "runserver" not in commands


def test_a_link_signs_in_once(product: Product) -> None:
    link = product.new_link()

    def sign_in() -> str:
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        browser = urllib.request.build_opener(jar)
        page = browser.open(link, timeout=60).read().decode()
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
        if token is None:
            return link
        form = urllib.parse.urlencode({"csrfmiddlewaretoken": token[1]}).encode()
        return str(browser.open(link, form, timeout=60).url)

    assert "/sign-in" not in sign_in()
    with pytest.raises(urllib.error.HTTPError):
        sign_in()


def test_asked_to_stop_it_leaves_no_process_behind(own_product: Product) -> None:
    assert len(processes_of(own_product.data_dir)) >= 4
    own_product.process.send_signal(signal.SIGTERM)
    assert own_product.process.wait(timeout=30) == 0
    assert processes_of(own_product.data_dir) == {}


def test_killed_outright_it_takes_its_children_along(own_product: Product) -> None:
    own_product.process.kill()
    own_product.process.wait()
    assert eventually(lambda: processes_of(own_product.data_dir) == {}, 10)


def test_a_killed_child_is_started_again(product: Product) -> None:
    worker = child(product, "judgeweb worker")
    assert worker is not None
    os.kill(worker, signal.SIGKILL)
    assert eventually(lambda: child(product, "judgeweb worker") not in (None, worker))
    assert get(f"{product.address}/healthz")[0] == 200


def test_a_taken_port_is_named_with_a_way_out(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = run_serving(environment_for(tmp_path, PORT=str(port)))
    assert run.returncode == 1
    assert run.stdout.startswith(f"judgeweb stopped: port {port} is taken. Choose another: PORT=")
    assert run.stdout.count("\n") == 1
    assert not (tmp_path / "judgeweb.sqlite3").exists()


def test_a_second_instance_on_the_same_data_is_refused(product: Product) -> None:
    run = run_serving({**product.environment, "PORT": str(free_port())})
    assert run.returncode == 1
    assert run.stdout == (
        f"judgeweb stopped: it runs already on {product.data_dir} "
        f"(process {product.process.pid}, {product.address}). Stop that one first.\n"
    )


def test_after_ctrl_c_a_second_start_keeps_the_data_and_gives_a_fresh_link(own_product: Product) -> None:
    manage(own_product.environment, "create_evaluation", "kept", "--name", "Kept", "--owner", "owner")
    assert stop(own_product) == 0
    assert processes_of(own_product.data_dir) == {}
    again = start(own_product.environment)
    try:
        said = " ".join(again.said)
        assert again.link != own_product.link
        assert "example" not in said
        assert "copy" not in said
        code = "print('slugs', *Evaluation.objects.order_by('pk').values_list('slug', flat=True))"
        listed = manage(again.environment, "shell", "-c", code)
        (example, kept) = listed.stdout.splitlines()[-1].split()[1:]
        assert kept == "kept", example
    finally:
        stop(again)
