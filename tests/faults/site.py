"""The running product that faults are tried on, with its children, one more worker, and what it is asked for."""

import http.cookiejar
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.faults.combinations import Servers
from tests.helpers.running_product import ROOT, Product, environment_for, processes_of, start, stop

REVIEWERS: Final = tuple(f"reviewer-{number}" for number in range(4))
WAIT_SECONDS: Final = 60.0
WORKER_COMMAND: Final = "judgeweb worker"
WEB_COMMAND: Final = "gunicorn"

Json = Any  # what a script prints


@dataclass
class Site:
    """One product with its servers, tokens of its people, and a session of its owner."""

    product: Product
    servers: Servers
    tokens: dict[str, str] = field(default_factory=dict)
    cookies: str = ""
    evaluations: int = 0

    @property
    def data_dir(self) -> Path:
        return self.product.data_dir

    @property
    def combination(self) -> str:
        return self.servers.combination

    def run_script(self, script: str, **values: object) -> Json:
        """Run a script in the shell of the product with these values, and return what it prints at last as JSON."""
        lines = "".join(f"{name} = {value!r}\n" for name, value in values.items())
        printed = self.product.manage("shell", "--verbosity", "0", "-c", f"{lines}\n{script}").stdout
        return json.loads(printed.splitlines()[-1])

    def find_children(self, command: str) -> list[int]:
        """The processes of this product whose command has this text, eldest first."""
        return sorted(pid for pid, line in processes_of(self.data_dir).items() if command in line)

    def kill_children(self, command: str) -> None:
        children = self.find_children(command)
        assert children, f"{command}: no such process"
        for pid in children:
            os.kill(pid, signal.SIGKILL)

    def kill_product(self) -> None:
        self.product.process.kill()
        self.product.process.wait()

    def start_product(self) -> None:
        """Start it again after a kill, as a service manager would."""
        commands = self.product.commands
        self.product = start(self.product.environment)
        self.product.commands = commands

    @contextmanager
    def one_more_worker(self, folder: str = "", name: str = "extra", **environment: str) -> Iterator[None]:
        """A worker beside those of the product, with the `sitecustomize` of this folder."""
        path = f"{ROOT / 'tests' / 'faults' / folder}:{ROOT}" if folder else str(ROOT)
        command = [sys.executable, "-m", "celery", "--quiet", "--app", "judgeweb", "worker", "--loglevel", "WARNING"]
        command += ["--without-gossip", "--without-mingle", "--hostname", f"{name}@localhost"]
        with (self.data_dir / f"{name}-worker.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**self.product.environment, "PYTHONPATH": path, **environment},
                stdout=log,
                stderr=log,
            )
        try:
            wait_until(lambda: self.is_registered(process.pid), f"the start of the worker {name}")
            yield
        finally:
            process.kill()
            process.wait()

    def is_registered(self, pid: int) -> bool:
        return bool(self.run_script("print(Worker.objects.alive().filter(pid=pid).count())", pid=pid))

    def examine(self) -> list[dict[str, str]]:
        """What `doctor` finds."""
        commands = [sys.executable, "manage.py", "doctor", "--json"]
        run = subprocess.run(commands, cwd=ROOT, env=self.product.environment, capture_output=True, text=True)
        return json.loads(run.stdout)  # type: ignore[no-any-return]

    def check_health(self) -> list[dict[str, str]]:
        """The problems that `doctor` finds."""
        return [finding for finding in self.examine() if finding["health"] == "problem"]


def wait_until(ready: Callable[[], object], what: str, seconds: float = WAIT_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:.0f} s"
        time.sleep(0.1)


MAKE_PEOPLE: Final = """
import json
for name in names:
    User.objects.create_user(name)
print(json.dumps(names))
"""


@contextmanager
def running_site(servers: Servers, data_dir: Path, **environment: str) -> Iterator[Site]:
    """Start a product on these servers, with its reviewers and their tokens, and stop it."""
    site = Site(start(build_environment(servers, data_dir, environment)), servers)
    try:
        site.run_script(MAKE_PEOPLE, names=list(REVIEWERS))
        for name in ("owner", *REVIEWERS):
            scopes = ("read", "review", "write", "admin") if name == "owner" else ("read", "review")
            made = site.product.manage("api_token", name, "--name", "faults", "--scope", *scopes)
            site.tokens[name] = made.stdout.split()[-1]
        site.cookies = sign_in(site.product.new_link())
        yield site
    finally:
        stop(site.product)


def build_environment(servers: Servers, data_dir: Path, more: Mapping[str, str]) -> dict[str, str]:
    settings = {"JUDGEWEB_API_REQUESTS_PER_MINUTE": "100000", "JUDGEWEB_OLLAMA_URL": "", **servers.environment}
    return environment_for(data_dir, **(settings | dict(more)))


def sign_in(link: str) -> str:
    """Sign in by the link, and return the cookies as a header."""
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    page = browser.open(link, timeout=60).read().decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert token is not None, page
    browser.open(link, urllib.parse.urlencode({"csrfmiddlewaretoken": token[1]}).encode(), timeout=60)
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in jar)
