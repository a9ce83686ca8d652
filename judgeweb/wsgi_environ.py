"""The WSGI environment of a request."""

import sys
from typing import Any, Final
from urllib.parse import unquote_to_bytes

# They have names of their own in the environment, or describe the connection only.
UNPREFIXED: Final = {"CONTENT_TYPE": "CONTENT_TYPE", "CONTENT_LENGTH": "judgeweb.length"}
JOINED_BY: Final = {"HTTP_COOKIE": "; "}


def build_environ(scope: Any) -> dict[str, Any]:
    """The environment without its body. Names with an underscore are left out: a proxy that sets X-Forwarded-Proto
    would pass a client's X_Forwarded_Proto on beside it, and here both have one name.
    """
    host, port = scope["server"] or ("localhost", 80)
    client = scope["client"] or ("", 0)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port or 80),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": client[0],
        "REMOTE_PORT": str(client[1]),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in scope["headers"]:
        add_header(environ, name.decode("latin-1"), value.decode("latin-1"))
    environ["judgeweb.chunked"] = "HTTP_TRANSFER_ENCODING" in environ
    environ.pop("HTTP_TRANSFER_ENCODING", None)
    length = environ.pop("judgeweb.length", "")
    environ["judgeweb.length"] = int(length) if length.isdecimal() else 0
    return environ


def add_header(environ: dict[str, Any], name: str, value: str) -> None:
    if "_" in name:
        return
    upper = name.upper().replace("-", "_")
    key = UNPREFIXED.get(upper, f"HTTP_{upper}")
    environ[key] = f"{environ[key]}{JOINED_BY.get(key, ',')}{value}" if key in environ else value
