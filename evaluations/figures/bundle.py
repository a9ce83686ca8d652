"""The script that draws plots in the browser: Vega, Vega-Lite and Vega-Embed, as one module.

It is made from vl-convert, which has them inside, and so is always of the version that draws files.
"""

import os
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Final

EXPORTS: Final = "export { vegaEmbed };"
# A change of either is a change of the script.
MADE_BY: Final = f"// vl-convert {version('vl-convert-python')}: {EXPORTS}\n"


def made(path: Path) -> Path:
    """The script in that file, made where it is missing or of another version: two seconds, once.

    Several processes may make it at once: a file is put into its place whole.
    """
    if not is_current(path):
        import vl_convert  # noqa: PLC0415 - 85 MB, for this once

        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "w") as file:
            file.write(MADE_BY + vl_convert.javascript_bundle(EXPORTS))
        os.chmod(draft, 0o644)
        os.replace(draft, path)
    return path


def is_current(path: Path) -> bool:
    try:
        with path.open() as file:
            return file.readline() == MADE_BY
    except FileNotFoundError:
        return False
