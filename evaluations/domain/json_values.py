"""Types of parsed JSON. Readers check each value that they use."""

from collections.abc import Mapping
from typing import Any, TypeAlias

JsonDict: TypeAlias = dict[str, Any]
JsonMapping: TypeAlias = Mapping[str, Any]  # one that is only read
