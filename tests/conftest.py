"""What all tests share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import product as products
from tests.product import Product

# How long an example takes says something about the machine only.
settings.register_profile("judgeweb", deadline=None)
settings.load_profile("judgeweb")


@pytest.fixture(scope="session")
def acceptance_data() -> Path:
    """Real data sets that are not part of the project."""
    folder = os.environ.get("JUDGEWEB_ACCEPTANCE_DATA")
    if not folder:
        pytest.skip("JUDGEWEB_ACCEPTANCE_DATA does not name a folder with the real data sets")
    return Path(folder)


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The real product with its worker and beat, started once and left running."""
    with products.own_database() as database:
        running = products.start(products.environment_for(tmp_path_factory.mktemp("product"), **database))
        yield running
        products.stop(running)
