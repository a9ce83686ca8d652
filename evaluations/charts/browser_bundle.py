"""The script that draws charts in the browser: Vega, Vega-Lite, Vega-Embed as one module."""

import os
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Final

EXPORT_STATEMENT: Final = "export { vegaEmbed };"
# A change of either is a change of the script.
BUNDLE_HEADER: Final = f"// vl-convert {version('vl-convert-python')}: {EXPORT_STATEMENT}\n"


def build_browser_bundle(path: Path) -> Path:
    """The path of the script, built if it is missing or outdated (two seconds).

    Several processes may make it at once: a file is put into its place whole.
    """
    if not is_bundle_current(path):
        import vl_convert  # noqa: PLC0415 - 85 MB, for this once

        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "w") as file:
            file.write(BUNDLE_HEADER + vl_convert.javascript_bundle(EXPORT_STATEMENT))
        os.replace(draft, path)
    return path


def is_bundle_current(path: Path) -> bool:
    try:
        with path.open() as file:
            return file.readline() == BUNDLE_HEADER
    except FileNotFoundError:
        return False
