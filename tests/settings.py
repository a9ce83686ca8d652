"""The product's settings with a data folder of their own, thrown away when the tests end."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

if "JUDGEWEB_TEST_DIR" not in os.environ:  # the workers of xdist are given their controller's
    os.environ["JUDGEWEB_TEST_DIR"] = tempfile.mkdtemp(prefix="judgeweb-tests-")
    atexit.register(shutil.rmtree, os.environ["JUDGEWEB_TEST_DIR"], ignore_errors=True)
os.environ["JUDGEWEB_DATA_DIR"] = os.environ["JUDGEWEB_TEST_DIR"]
os.environ["JUDGEWEB_ENV_FILE"] = os.devnull

from judgeweb.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STATIC_ROOT = Path(os.environ["JUDGEWEB_TEST_DIR"]) / "static"
STATIC_ROOT.mkdir(exist_ok=True)  # WhiteNoise warns where there is none
STORAGES = {
    "default": {"BACKEND": "judgeweb.file_storage.WholeFiles"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
# Rows have the numbers of those of the test before and of other workers: nothing may be remembered between them.
CACHE_DIR = Path(os.environ["JUDGEWEB_TEST_DIR"]) / f"cache-{os.environ.get('PYTEST_XDIST_WORKER', '')}"
CACHES = {**CACHES, "reports": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}  # noqa: F405
