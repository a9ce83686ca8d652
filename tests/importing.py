"""Files for tests, imported by the services that import them in life."""

import io
import json
from collections.abc import Sequence
from typing import Any

from evaluations.domain import Reading
from evaluations.models import Evaluation, Import
from evaluations.services.importing.importing import begin, store
from evaluations.services.importing.previewing import preview

COMPARISON = {
    "query_id": "q1",
    "query": "Why is the sky blue?",
    "candidate_a": "alpha",
    "response_a": "Rayleigh scattering.",
    "candidate_b": "beta",
    "response_b": "It reflects the sea.",
}
VERDICT = {
    "query_id": "q1",
    "candidate_a": "alpha",
    "candidate_b": "beta",
    "rater": "ann",
    "rater_kind": "human",
    "choice": "A",
}

SCORE = {
    "query_id": "q1",
    "candidate": "alpha",
    "rater": "ann",
    "rater_kind": "human",
    "value": 4,
}


def comparison(key: str = "q1", **columns: Any) -> dict[str, Any]:
    return {**COMPARISON, "query_id": key, **columns}


def verdict(key: str = "q1", **columns: Any) -> dict[str, Any]:
    return {**VERDICT, "query_id": key, **columns}


def score(key: str = "q1", candidate: str = "alpha", value: Any = 4, **columns: Any) -> dict[str, Any]:
    return {**SCORE, "query_id": key, "candidate": candidate, "value": value, **columns}


def jsonl(rows: Sequence[dict[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def check(
    evaluation: Evaluation,
    content: bytes,
    *,
    name: str = "rows.jsonl",
    pair: str = "all",
    derive_pairs: float | None = None,
    **reading: Any,
) -> Import:
    return preview(
        evaluation,
        io.BytesIO(content),
        file_name=name,
        reading=Reading(**reading),
        pair=pair,
        derive_pairs=derive_pairs,
        user=None,
    )


def bring(
    evaluation: Evaluation,
    *rows: dict[str, Any],
    skip_bad: bool = False,
    pair: str = "all",
    derive_pairs: float | None = None,
    **reading: Any,
) -> Import:
    """Check these rows and store them; the import as it is afterwards."""
    importing = check(evaluation, jsonl(rows), pair=pair, derive_pairs=derive_pairs, **reading)
    begin(importing, skip_bad=skip_bad, user=None)
    store(importing)
    importing.refresh_from_db()
    return importing
