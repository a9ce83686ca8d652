"""The fault table: after each fault nothing is lost, nothing doubled, and work goes on by itself."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.faults.combinations import EMBEDDED, RABBITMQ, Servers
from tests.faults.conftest import UnderLoad
from tests.faults.load import under_load
from tests.faults.site import WEB_COMMAND, WORKER_COMMAND, Site, running_site
from tests.serving.test_garbage import GARBAGE

pytestmark = pytest.mark.worker

OUTAGE_SECONDS: Final = 60.0
SHORT_OUTAGE_SECONDS: Final = 3.0
ENDPOINT_OUTAGE_SECONDS: Final = 10.0
# With the static files and the database of a new site half of it is free.
DISK_MEGABYTES: Final = 200


def test_no_fault(site: Site, under: UnderLoad) -> None:
    with under(site):
        pass


# ---- processes -----------------------------------------------------------------------------


def test_worker_killed(site: Site, under: UnderLoad) -> None:
    with under(site):
        site.kill_children(WORKER_COMMAND)


def test_web_server_killed(site: Site, under: UnderLoad) -> None:
    with under(site, may_break=True):
        site.kill_children(WEB_COMMAND)


def test_everything_killed_and_started_again(site: Site, under: UnderLoad) -> None:
    with under(site, may_break=True, may_wait=True):
        site.kill_product()
        site.start_product()


def test_one_of_two_workers_frozen(site: Site, under: UnderLoad) -> None:
    """It goes on after the others have done its work."""
    (frozen,) = site.find_children(WORKER_COMMAND)
    with site.one_more_worker(), under(site) as load:
        os.kill(frozen, signal.SIGSTOP)
        try:
            load.start_second_run()
            load.wait_until_done()
        finally:
            os.kill(frozen, signal.SIGCONT)


def test_scheduler_of_one_worker_dead(site: Site, under: UnderLoad) -> None:
    """The other worker is killed too, so that there is something to sweep."""
    (healthy,) = site.find_children(WORKER_COMMAND)
    with site.one_more_worker("silent_timer"), under(site):
        os.kill(healthy, signal.SIGKILL)


def test_clocks_of_two_workers_a_minute_off(site: Site, under: UnderLoad) -> None:
    """One is ahead, one behind, and the third is killed: leases are told by the database's clock."""
    (right,) = site.find_children(WORKER_COMMAND)
    with ExitStack() as stack:
        stack.enter_context(site.one_more_worker("skewed_clock", name="ahead", JUDGEWEB_TEST_CLOCK_SECONDS="60"))
        stack.enter_context(site.one_more_worker("skewed_clock", name="behind", JUDGEWEB_TEST_CLOCK_SECONDS="-60"))
        with under(site):
            os.kill(right, signal.SIGKILL)


# ---- broker --------------------------------------------------------------------------------


def test_broker_connections_cut(network_site: Site, under: UnderLoad) -> None:
    with under(network_site):
        for _ in range(3):
            network_site.servers.cut_broker_connections()
            time.sleep(1)


def test_broker_killed_and_started_again(network_site: Site, under: UnderLoad) -> None:
    broker = network_site.servers.broker
    assert broker is not None
    with under(network_site) as load:
        broker.kill()
        load.start_second_run()
        time.sleep(SHORT_OUTAGE_SECONDS)
        broker.start()


def test_broker_emptied(site: Site, under: UnderLoad) -> None:
    with under(site) as load:
        load.start_second_run()
        site.servers.empty_broker(site.data_dir)


def test_broker_unreachable(site: Site, under: UnderLoad) -> None:
    with under(site) as load, broker_away(site):
        load.start_second_run()
        time.sleep(OUTAGE_SECONDS)


@contextmanager
def broker_away(site: Site) -> Iterator[None]:
    """Connections are cut and refused; messages that are files find no folder."""
    if site.servers.proxy is not None:
        site.servers.proxy.refuse()
        yield
        site.servers.proxy.recover()
        return
    folder, away = site.data_dir / "broker", site.data_dir / "broker-away"
    folder.rename(away)
    folder.touch()
    yield
    folder.unlink()
    away.rename(folder)


def test_broker_silent(network_site: Site, under: UnderLoad) -> None:
    """Connections stay, and nothing goes through."""
    proxy = network_site.servers.proxy
    assert proxy is not None
    with under(network_site) as load:
        proxy.go_silent()
        load.start_second_run()
        time.sleep(OUTAGE_SECONDS)
        proxy.recover()


def test_poisoned_messages(site: Site, under: UnderLoad) -> None:
    with under(site):
        site.servers.put_into_queue(site.data_dir, list(GARBAGE))


def test_two_sites_at_one_broker(network_site: Site, under: UnderLoad, tmp_path: Path) -> None:
    """They even share the queue, so that each takes half of the other's messages."""
    servers, database = network_site.servers, "other"
    servers.make_database(database)
    other = Servers(servers.combination, servers.database, servers.broker, servers.proxy, database)
    with running_site(other, tmp_path) as second, under(network_site), under_load(second, tmp_path):
        pass


# ---- database ------------------------------------------------------------------------------


def test_database_restarted(network_site: Site, under: UnderLoad) -> None:
    database = network_site.servers.database
    assert database is not None
    with under(network_site):
        assert database.process is not None
        database.process.send_signal(signal.SIGQUIT)  # without an end in order
        database.process.wait()
        time.sleep(SHORT_OUTAGE_SECONDS)
        database.start()


def test_database_connections_cut(network_site: Site, under: UnderLoad) -> None:
    with under(network_site):
        cut = 0
        for _ in range(3):
            cut += network_site.servers.cut_database_connections()
            time.sleep(1)
        assert cut


# ---- disk ----------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MEGABYTES}m", "none", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_disk_full(site: Site, under: UnderLoad, small_disk: Path) -> None:
    """The data folder is full for a while: with SQLite the database is in it."""
    if site.combination == RABBITMQ:
        pytest.skip("the broker makes no difference")
    servers = site.servers
    if site.combination != EMBEDDED:
        servers.make_database("small")
        servers = Servers(servers.combination, servers.database, servers.broker, servers.proxy, "small")
    settings = {"JUDGEWEB_DISK_RESERVE_MB": "10", "JUDGEWEB_QUEUE_PREFIX": "small"}
    with running_site(servers, small_disk, **settings) as small, under(small, known_problems=("disk",)):
        filler = small_disk / "filler"
        fill(filler)
        time.sleep(SHORT_OUTAGE_SECONDS)
        filler.unlink()


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (1024 * 1024, 4096, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue


# ---- LLM endpoint --------------------------------------------------------------------------


def test_endpoint_away(site: Site, under: UnderLoad) -> None:
    with under(site) as load:
        load.proxy.refuse()
        time.sleep(ENDPOINT_OUTAGE_SECONDS)
        load.proxy.recover()
