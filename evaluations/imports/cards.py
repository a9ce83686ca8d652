"""The cards of the files that a person is importing."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from django.db.models import Q

from evaluations.domain.files import FileFormat, ImportState
from evaluations.imports.forms import FORMAT_CHOICES, ImportOptionsForm
from evaluations.imports.lifecycle import WORKING_STATES, get_import_progress
from evaluations.imports.undo import explain_why_not_undoable
from evaluations.jobs.queue import JobProgress
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.users import User

OPEN_STATES: Final = (ImportState.MAPPING, ImportState.PREVIEWED, *WORKING_STATES)
MAX_CARDS: Final = 50
MAX_SHOWN_BAD_ROWS: Final = 5
FORMAT_LABELS: Final[Mapping[str, str]] = {
    str(name): label.partition(":")[0] for name, label in FORMAT_CHOICES if name != FileFormat.AUTO
}


@dataclass(frozen=True)
class ImportCard:
    importing: Import
    form: ImportOptionsForm

    @property
    def is_queued(self) -> bool:
        return self.importing.state == ImportState.PREVIEWED and self.importing.queued_by_id is not None

    @property
    def is_working(self) -> bool:
        return self.importing.state in WORKING_STATES or self.importing.queued_by_id is not None

    @property
    def is_editable(self) -> bool:
        return self.importing.state == ImportState.PREVIEWED and not self.is_queued

    @property
    def is_ready(self) -> bool:
        return self.is_editable and self.importing.is_ready

    @property
    def is_done(self) -> bool:
        return self.importing.state == ImportState.DONE and self.importing.queued_by_id is None

    @property
    def format_label(self) -> str:
        return FORMAT_LABELS.get(self.importing.format, self.importing.format)

    @cached_property
    def progress(self) -> JobProgress:
        return get_import_progress(self.importing)

    @property
    def undo_refusal(self) -> str:
        return explain_why_not_undoable(self.importing)

    @property
    def first_bad_rows(self) -> list[Mapping[str, object]]:
        return list(self.importing.bad_rows[:MAX_SHOWN_BAD_ROWS])


@dataclass(frozen=True)
class ImportCards:
    """``imported``: ids of the files that were just imported, whose cards stay."""

    cards: list[ImportCard]
    imported: Collection[int]

    @property
    def ready(self) -> list[ImportCard]:
        return [card for card in self.cards if card.is_ready]

    @property
    def done(self) -> list[ImportCard]:
        return [card for card in self.cards if card.is_done]

    @property
    def kept_ids(self) -> str:
        """The cards that stay on the page when their work has ended, also where it failed."""
        working = {card.importing.pk for card in self.cards if card.is_working}
        return ",".join(map(str, sorted({*self.imported, *working})))

    @property
    def is_working(self) -> bool:
        return any(card.is_working for card in self.cards)

    @property
    def comparisons_expected(self) -> int:
        return sum(card.importing.new_comparisons for card in self.ready)

    @property
    def comparisons_imported(self) -> int:
        return sum(card.importing.new_comparisons for card in self.done)

    @property
    def rows_ready(self) -> int:
        return sum(card.importing.rows_stored for card in self.ready)

    @property
    def has_bad_rows(self) -> bool:
        return any(card.importing.rows_bad for card in self.ready)

    @property
    def has_ratings(self) -> bool:
        """Whether verdicts or scores were imported, so that there are results to read."""
        return any(card.importing.new_verdicts or card.importing.new_scores for card in self.done)


def build_cards(
    evaluation: Evaluation, user: User, imported: Collection[int], forms: Mapping[int, ImportOptionsForm] | None = None
) -> ImportCards:
    """The user's open imports, and those just imported. ``forms``: forms that were refused."""
    is_shown = Q(user=user, state__in=OPEN_STATES) | Q(pk__in=imported)
    rows = evaluation.imports.filter(is_shown).exclude(format="pairs").select_related("evaluation", "user")
    imports = sorted(rows.order_by("-pk")[:MAX_CARDS], key=lambda row: row.pk)
    cards = [ImportCard(row, (forms or {}).get(row.pk) or ImportOptionsForm(row)) for row in imports]
    return ImportCards(cards, imported)
