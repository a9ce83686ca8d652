"""Changes to an evaluation's own settings."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from itertools import chain
from typing import Final

from django.db import transaction
from django.db.models import Model
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.decisions import DecisionBars
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ImportState
from evaluations.domain.texts import normalize_lines
from evaluations.evaluation_settings.selectors import (
    list_candidates_and_judges,
    list_review_rubrics,
    list_showable_judges,
)
from evaluations.models.clock import read_clock
from evaluations.models.comparisons import Candidate, SavedFilter
from evaluations.models.evaluations import BAR_COLUMNS, EarlierGuidelines, Evaluation
from evaluations.models.judges import Judge
from evaluations.models.rubrics import RubricVersion
from evaluations.models.users import User

MAX_REVIEWS_WANTED: Final = 100
MAX_RESERVATION_MINUTES: Final = 7 * 24 * 60


@dataclass(frozen=True)
class EvaluationSettings:
    """The settings of an evaluation, by the names of its columns."""

    name: str
    description: str
    guidelines: str
    review_rubric: RubricVersion | None
    reviews_wanted: int
    reservation_minutes: int
    shown_judge: Judge | None
    reveal: str
    name_reveal: str
    label_policy: str
    resolve_judge_disagreements: bool


SETTINGS_COLUMNS: Final = tuple(field.name for field in fields(EvaluationSettings))


def read_settings(evaluation: Evaluation) -> EvaluationSettings:
    return EvaluationSettings(**{name: getattr(evaluation, name) for name in SETTINGS_COLUMNS})


def change_settings(evaluation: Evaluation, settings: EvaluationSettings, *, user: User | None) -> Evaluation:
    if not settings.name.strip():
        raise InputRefused("Enter a name.", field="name")
    if settings.review_rubric and settings.review_rubric not in list_review_rubrics(evaluation):
        raise InputRefused(
            "This rubric cannot be used for reviews. Choose a version of this evaluation.", field="review_rubric"
        )
    if settings.shown_judge and settings.shown_judge not in list_showable_judges(evaluation):
        raise InputRefused(
            "This judge is not in the evaluation, or is archived. Choose another one.", field="shown_judge"
        )
    if not 1 <= settings.reviews_wanted <= MAX_REVIEWS_WANTED:
        raise InputRefused(
            f"Reviews per comparison must be between 1 and {MAX_REVIEWS_WANTED}.", field="reviews_wanted"
        )
    if not 1 <= settings.reservation_minutes <= MAX_RESERVATION_MINUTES:
        raise InputRefused(
            f"Reservation must be between 1 and {MAX_RESERVATION_MINUTES:,} minutes.", field="reservation_minutes"
        )
    texts = {name: normalize_lines(getattr(settings, name)) for name in ("name", "description", "guidelines")}
    changes = {name: getattr(settings, name) for name in SETTINGS_COLUMNS} | texts
    return change_evaluation(evaluation, changes, user=user)


@transaction.atomic
def change_evaluation(evaluation: Evaluation, changes: Mapping[str, object], *, user: User | None) -> Evaluation:
    """Write changed values into the evaluation's columns, and record the old ones."""
    changes = {name: value for name, value in changes.items() if getattr(evaluation, name) != value}
    if not changes:
        return evaluation
    before = {name: to_event_value(getattr(evaluation, name)) for name in changes}
    dated = {}
    if "guidelines" in changes:
        dated["guidelines_changed_at"] = timezone.now()
        EarlierGuidelines.objects.create(evaluation=evaluation, user=user, text=evaluation.guidelines)
    if changes.keys() & set(BAR_COLUMNS):
        dated["bars_changed_at"] = read_clock()
    for name, value in {**changes, **dated}.items():
        setattr(evaluation, name, value)
    evaluation.save(update_fields=[*changes, *dated])
    after = {name: to_event_value(value) for name, value in changes.items()}
    record_event("changed", evaluation, user=user, evaluation=evaluation, before=before, after=after)
    return evaluation


def to_event_value(value: object) -> object:
    """The value as an event stores it: rows by name and number, times as text."""
    if isinstance(value, Model):
        return f"{value} ({value.pk})"
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


BAR_LABELS: Final[Mapping[str, str]] = {
    "stand_in": "Stand-in margin",
    "aspect": "Margin on one aspect",
    "unreliable": "Not reliable below",
    "failures": "Failed calls",
    "inconsistency": "Order inconsistency",
    "bias": "Bias effect",
    "half_width": "Spot-check precision",
}
MAX_HALF_WIDTH: Final = 0.5


def read_bars(evaluation: Evaluation) -> DecisionBars:
    return DecisionBars(**{name: getattr(evaluation, f"bar_{name}") for name in BAR_LABELS})


def change_bars(evaluation: Evaluation, bars: DecisionBars, *, user: User | None) -> Evaluation:
    """Set the bars of decisions, with the time of the change. Raises InputRefused."""
    values = asdict(bars)
    for name, share in values.items():
        refuse_bar(name, share)
    if bars.unreliable < bars.stand_in:
        raise InputRefused("“Not reliable below” must be at least the stand-in margin.", field="unreliable")
    return change_evaluation(evaluation, {f"bar_{name}": share for name, share in values.items()}, user=user)


def refuse_bar(name: str, share: float) -> None:
    """Raise InputRefused for a bar that the database would refuse. NaN is refused, too."""
    label = BAR_LABELS[name]
    if name == "half_width" and not 0 < share <= MAX_HALF_WIDTH:
        raise InputRefused(f"{label} must be more than 0 and 50 points or less.", field=name)
    if not 0 < share < 1:
        raise InputRefused(f"{label} must be more than 0 and less than 100.", field=name)


def record_first_look(evaluation: Evaluation) -> None:
    """Store when somebody first looked at decisions: later changes of the bars are printed as such."""
    if evaluation.results_seen_at is None:
        unseen = Evaluation.objects.filter(pk=evaluation.pk, results_seen_at__isnull=True)
        # By the same reading of the clock as a change of the bars, with which it is compared.
        unseen.update(results_seen_at=read_clock())


def move_to_archive(evaluation: Evaluation, *, user: User | None) -> Evaluation:
    """Archive the evaluation: it leaves the list and can be restored."""
    return change_evaluation(evaluation, {"archived_at": evaluation.archived_at or timezone.now()}, user=user)


def take_from_archive(evaluation: Evaluation, *, user: User | None) -> Evaluation:
    return change_evaluation(evaluation, {"archived_at": None}, user=user)


MAX_FAMILY_CHARACTERS = 80
MAX_CANDIDATE_CHARACTERS: Final = 200


@transaction.atomic
def rename_candidates(evaluation: Evaluation, names: Mapping[int, str], *, user: User | None) -> int:
    """Rename models by id. Returns how many changed. Raises InputRefused."""
    candidates = {row.pk: row for row in Candidate.objects.select_for_update().filter(evaluation=evaluation)}
    changed = {pk: name for pk, name in names.items() if pk in candidates and candidates[pk].name != name}
    if not changed:
        return 0
    if evaluation.imports.filter(state=ImportState.STORING).exists():
        raise InputRefused("An import is in progress. Rename the model when it is done.")
    taken = {row.name: pk for pk, row in candidates.items()}
    for pk, name in changed.items():
        refuse_candidate_name(name)
        if taken.setdefault(name, pk) != pk:
            raise InputRefused(f"There is already a model “{name}”. Choose another name.")
    for pk, name in changed.items():
        row, before = candidates[pk], candidates[pk].name
        row.first_name, row.name = row.sort_name, name
        row.save(update_fields=["name", "first_name"])
        rename_in_saved_filters(evaluation, before, name)
        record_event("renamed", row, user=user, evaluation=evaluation, before={"name": before}, after={"name": name})
    Evaluation.objects.filter(pk=evaluation.pk).update(comparisons_changed_at=Now())
    return len(changed)


def refuse_candidate_name(name: str) -> None:
    if not name.strip():
        raise InputRefused("Enter a model name.")
    if len(name) > MAX_CANDIDATE_CHARACTERS:
        raise InputRefused(f"A model name can have up to {MAX_CANDIDATE_CHARACTERS} characters.")


def rename_in_saved_filters(evaluation: Evaluation, before: str, after: str) -> None:
    for saved in SavedFilter.objects.filter(evaluation=evaluation):
        renamed = {key: after for key in ("candidate", "against") if saved.filter.get(key) == before}
        if renamed:
            saved.filter = {**saved.filter, **renamed}
            saved.save(update_fields=["filter"])


@transaction.atomic
def set_families(
    evaluation: Evaluation, candidates: Mapping[int, str], judges: Mapping[int, str], *, user: User | None
) -> int:
    """Set families by id, and record the old ones. Returns how many changed."""
    for name in chain(candidates.values(), judges.values()):
        if len(name) > MAX_FAMILY_CHARACTERS:
            raise InputRefused(f"A family name can have up to {MAX_FAMILY_CHARACTERS} characters.")
    before, after = {}, {}
    known_candidates, known_judges = list_candidates_and_judges(evaluation)
    rows: list[tuple[str, Candidate | Judge, str | None]] = [
        *(("candidate", row, candidates.get(row.pk)) for row in known_candidates),
        *(("judge", row, judges.get(row.pk)) for row in known_judges),
    ]
    for kind, row, family in rows:
        if family is not None and row.family != family:
            name = f"{kind} {row.name}"  # a judge and a candidate may have the same name
            before[name], after[name] = row.family, family
            row.family = family
            row.save(update_fields=["family"])
    if after:
        record_event("changed families", evaluation, user=user, evaluation=evaluation, before=before, after=after)
    return len(after)
