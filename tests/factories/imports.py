"""Rows of files, and their import, for tests."""

import io
import json
from collections.abc import Sequence
from time import monotonic
from typing import Any

from evaluations.domain.files import ReadOptions
from evaluations.domain.imports import ImportRequest
from evaluations.domain.pairing import parse_pairing
from evaluations.imports.lifecycle import UNDO_JOB, continue_import
from evaluations.imports.preview import preview_file
from evaluations.imports.services import start_storing
from evaluations.jobs.claims import claim_job
from evaluations.jobs.queue import find_job
from evaluations.jobs.runner import run_step
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import

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


def comparison_row(key: str = "q1", **columns: Any) -> dict[str, Any]:
    return {**COMPARISON, "query_id": key, **columns}


def verdict_row(key: str = "q1", **columns: Any) -> dict[str, Any]:
    return {**VERDICT, "query_id": key, **columns}


def score_row(key: str = "q1", candidate: str = "alpha", value: Any = 4, **columns: Any) -> dict[str, Any]:
    return {**SCORE, "query_id": key, "candidate": candidate, "value": value, **columns}


def encode_jsonl(rows: Sequence[dict[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def preview_rows(
    evaluation: Evaluation,
    content: bytes,
    *,
    name: str = "rows.jsonl",
    pair: str = "all",
    derive_pairs: float | None = None,
    **reading: Any,
) -> Import:
    request = ImportRequest(ReadOptions(**reading), parse_pairing(pair), derive_pairs)
    return preview_file(evaluation, io.BytesIO(content), name, request, user=None)


def import_rows(
    evaluation: Evaluation,
    *rows: dict[str, Any],
    skip_bad: bool = False,
    pair: str = "all",
    derive_pairs: float | None = None,
    **reading: Any,
) -> Import:
    """Check these rows and store them; the import as it is afterwards."""
    importing = preview_rows(evaluation, encode_jsonl(rows), pair=pair, derive_pairs=derive_pairs, **reading)
    start_storing(importing, skip_bad=skip_bad, user=None)
    continue_import(importing)
    importing.refresh_from_db()
    return importing


def continue_undo(importing: Import, *, seconds: float | None = None) -> bool:
    """Remove hidden rows for at most this many seconds. Returns whether rows are left."""
    job = find_job(UNDO_JOB, importing.pk)
    claim = claim_job(job.pk, until=None if seconds is None else monotonic() + seconds) if job else None
    try:
        return claim is not None and run_step(claim)
    finally:
        importing.refresh_from_db()
