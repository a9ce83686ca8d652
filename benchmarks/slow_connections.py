"""``python -m benchmarks.slow_connections``: what slow clients do to everybody else's pages.

It starts the web server with gunicorn's threads (as in 0.1.0) and with the product's worker class, each on a data
folder of its own, and prints for both: requests a second and processor time of a small page, and how long that page
takes while 200 heads, 50 bodies and 50 readers that never finish are open.
"""

import argparse
import http.client
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
WORKER_CLASSES: Final = {"gthread": "gthread", "ours": "judgeweb.web_worker.WebWorker"}
SMALL_PAGE: Final = "/sign-in"
SLOW_KINDS: Final = {"heads": 200, "bodies": 50, "readers": 50}
TIMEOUT_SECONDS: Final = 10.0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def running_server(worker_class: str, threads: int) -> Iterator[tuple[int, int]]:
    """The port and process id of a web server with a new database."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        environment = {**os.environ, "JUDGEWEB_DATA_DIR": folder, "PORT": str(port), "JUDGEWEB_ENV_FILE": os.devnull}
        ready = [sys.executable, "manage.py", "make_ready"]
        subprocess.run(ready, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
        command = [sys.executable, "-m", "gunicorn", "judgeweb.wsgi", "--bind", f"127.0.0.1:{port}"]
        command += ["--worker-class", worker_class, "--threads", str(threads), "--log-level", "error"]
        server = subprocess.Popen(command, cwd=ROOT, env=environment)
        try:
            while request_seconds(port) is None:
                time.sleep(0.2)
            yield port, server.pid
        finally:
            server.terminate()
            server.wait()


def request_seconds(port: int) -> float | None:
    """How long the small page takes; None if it does not come."""
    began = time.perf_counter()
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)) as connection:
        try:
            connection.request("GET", SMALL_PAGE)
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            return None
    return time.perf_counter() - began if answer.status == http.HTTPStatus.OK else None


def processor_seconds(pid: int) -> float:
    """Of the process and its children."""
    total = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(path.parent.name) == pid or int(fields[1]) == pid:
                total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def measure_rate(port: int, pid: int, *, clients: int, seconds: float) -> tuple[float, float]:
    """Requests a second, and milliseconds of processor time for each, with connections that are kept."""
    counts = [0] * clients
    until = time.perf_counter() + seconds

    def ask(number: int) -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)) as connection:
            while time.perf_counter() < until:
                connection.request("GET", SMALL_PAGE)
                connection.getresponse().read()
                counts[number] += 1

    used = processor_seconds(pid)
    threads = [threading.Thread(target=ask, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    used = processor_seconds(pid) - used
    return sum(counts) / seconds, used / sum(counts) * 1000


def open_slow_client(kind: str, port: int) -> socket.socket:
    client = socket.socket()
    if kind == "readers":
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(TIMEOUT_SECONDS)
    client.connect(("127.0.0.1", port))
    host = f"Host: 127.0.0.1:{port}\r\n"
    if kind == "heads":
        client.sendall(f"GET / HTTP/1.1\r\n{host}X-Slow: ".encode())
    elif kind == "bodies":
        form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 50000"
        client.sendall(f"POST {SMALL_PAGE} HTTP/1.1\r\n{host}{form}\r\n\r\na=".encode())
    else:
        client.sendall(f"GET /static/made/vega.js HTTP/1.1\r\n{host}\r\n".encode())
    return client


def drip(clients: list[socket.socket], stop: threading.Event) -> None:
    """Send a byte on each connection now and then."""
    while not stop.wait(1):
        for client in clients:
            with suppress(OSError):
                client.send(b"x")


@contextmanager
def slow_clients(port: int) -> Iterator[None]:
    clients: list[socket.socket] = []
    stop = threading.Event()
    for kind, number in SLOW_KINDS.items():
        for _ in range(number):
            with suppress(OSError):
                clients.append(open_slow_client(kind, port))
    dripping = threading.Thread(target=drip, args=(clients, stop))
    dripping.start()
    try:
        yield
    finally:
        stop.set()
        dripping.join()
        for client in clients:
            client.close()


def describe_latencies(measured: list[float | None]) -> str:
    answered = sorted(seconds * 1000 for seconds in measured if seconds is not None)
    if not answered:
        return f"none of {len(measured)} answered within {TIMEOUT_SECONDS:.0f} s"
    p95 = answered[min(len(answered) - 1, int(len(answered) * 0.95))]
    return f"median {statistics.median(answered):.0f} ms, p95 {p95:.0f} ms, {len(answered)} of {len(measured)} answered"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", choices=[*WORKER_CLASSES, "both"], default="both")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--requests", type=int, default=50)
    options = parser.parse_args()
    for name in WORKER_CLASSES if options.server == "both" else [options.server]:
        with running_server(WORKER_CLASSES[name], threads=8) as (port, pid):
            for clients in (1, 8):
                rate, used = measure_rate(port, pid, clients=clients, seconds=options.seconds)
                say(f"{name}: {clients} clients: {rate:.0f} requests/s, {used:.2f} ms of processor time each")
            say(f"{name}: nobody slow: {describe_latencies([request_seconds(port) for _ in range(options.requests)])}")
            with slow_clients(port):
                asked = options.requests if name != "gthread" else 3
                say(f"{name}: 300 slow clients: {describe_latencies([request_seconds(port) for _ in range(asked)])}")


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
