"""One product for each combination, and the table of figures at the end."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest

from tests.faults.combinations import COMBINATIONS, running_servers
from tests.faults.figures import Figures, write_table
from tests.faults.load import Load, under_load
from tests.faults.site import Site, running_site

ROWS: Final[list[tuple[str, str, Figures]]] = []

UnderLoad = Callable[..., AbstractContextManager[Load]]


@pytest.fixture(scope="session", params=list(COMBINATIONS))
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    with TemporaryDirectory(prefix="faults-") as name:  # not in pytest's, which the user of PostgreSQL may not enter
        folder = Path(name)
        folder.chmod(0o755)
        with running_servers(COMBINATIONS[request.param], folder) as servers:
            (folder / "data").mkdir()
            with running_site(servers, folder / "data") as running:
                yield running


@pytest.fixture
def network_site(site: Site) -> Site:
    """A site with a broker that is a server."""
    if site.servers.broker is None:
        pytest.skip("messages are files: there are no connections")
    return site


@pytest.fixture
def under(request: pytest.FixtureRequest, tmp_path: Path) -> UnderLoad:
    """The load that a fault happens under; after it the figures are noted under the name of the test."""

    @contextmanager
    def load_and_note(site: Site, **options: Any) -> Iterator[Load]:
        with under_load(site, tmp_path, **options) as load:
            yield load
        name = request.node.originalname.removeprefix("test_").replace("_", " ")
        ROWS.append((name, site.combination, load.figures()))

    return load_and_note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if ROWS:
        terminalreporter.section("how long each fault took")
        for line in write_table(sorted(ROWS, key=lambda row: row[0])):
            terminalreporter.line(line)
