"""What a JSON document holds, as it was parsed: whoever reads a value checks what it is."""

from collections.abc import Mapping
from typing import Any, TypeAlias

JsonDict: TypeAlias = dict[str, Any]
JsonMapping: TypeAlias = Mapping[str, Any]  # one that is only read
