"""The four exports that most people want, in the order of the export page."""

from dataclasses import dataclass
from typing import Final

from evaluations.domain.files import FOLDER_FORMAT
from evaluations.formats.export_format import ExportFormat
from evaluations.formats.export_formats import EXPORT_FORMATS


@dataclass(frozen=True)
class ExportCard:
    """A card of the page. ``formats``: name and label of each format to choose from, the default first."""

    name: str
    title: str
    purpose: str
    formats: tuple[tuple[str, str], ...]


EXPORT_CARDS: Final = (
    ExportCard(
        "preferences",
        "Preferences (DPO)",
        "Prompt, chosen and rejected response, for DPO and reward models.",
        (("dpo", "DPO"),),
    ),
    ExportCard(
        "fine-tuning",
        "Fine-tuning (SFT/KTO)",
        "Preferred conversations, or single responses labeled good or bad.",
        (("messages", "SFT"), ("kto", "KTO")),
    ),
    ExportCard(
        "hugging-face",
        "Hugging Face dataset",
        "Dataset card and Parquet files, ready to publish or load.",
        ((FOLDER_FORMAT, "zip"),),
    ),
    ExportCard(
        "everything",
        "Everything",
        "All texts, votes, verdicts and rationales.",
        (("jsonl", "JSONL"), ("csv", "CSV"), ("parquet", "Parquet")),
    ),
)
CARD_FORMATS: Final = frozenset(name for card in EXPORT_CARDS for name, _ in card.formats)
# The rows of these are previewed by a format with the same rows that is written as lines.
PREVIEWED_AS: Final = {FOLDER_FORMAT: "dpo", "csv": "jsonl", "parquet": "jsonl"}


def list_more_formats(*, backs_up: bool) -> list[ExportFormat]:
    """The formats without a card. Backups are for owners."""
    formats = [export_format for name, export_format in EXPORT_FORMATS.items() if name not in CARD_FORMATS]
    return [export_format for export_format in formats if backs_up or not export_format.is_backup]
