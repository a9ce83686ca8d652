"""Resolutions, comments and explanations of choices."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.choices import Choice, Stage
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import RESOLUTION_REASON_TEXTS, DifferenceReason, ReviewState
from evaluations.domain.texts import replace_unstorable
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.rubrics import Aspect, RubricAspect
from evaluations.models.users import User
from evaluations.models.verdicts import Adjudication, Comment, Mention, Review, Score, Verdict
from evaluations.verdicts.votes import lock_comparisons, update_labels

MAX_REASON_LENGTH: Final = 5_000


class ResolvedElsewhere(InputRefused):
    """Somebody else resolved the aspect or withdrew its resolution in the meantime; nothing was stored."""


@dataclass(frozen=True)
class AspectDecision:
    """``version``: of the resolution that the user saw, 0 if there was none."""

    aspect: Aspect
    choice: str
    version: int = 0


@dataclass(frozen=True)
class ResolutionNote:
    """Why, if the user says it: a category, words, or neither. ``batch``: the action that makes the resolution."""

    category: str = ""
    reason: str = ""
    batch: UUID | None = None
    in_bulk: bool = False


def resolve_aspect(
    comparison: Comparison, aspect: Aspect, *, choice: str, reason: str, version: int, user: User, category: str = ""
) -> Adjudication:
    """Resolve one aspect. ``version``: of the resolution that the user saw, 0 if there was none."""
    decision, note = AspectDecision(aspect, choice, version), ResolutionNote(category, reason)
    return resolve_aspects(comparison, [decision], note, user=user)[0]


@transaction.atomic
def resolve_aspects(
    comparison: Comparison, decisions: Sequence[AspectDecision], note: ResolutionNote, *, user: User
) -> list[Adjudication]:
    """Resolve several aspects of one comparison, all or none. New resolutions share a batch, by which to undo them."""
    refuse_archived_evaluation_of(comparison)
    if not decisions:
        raise InputRefused("Choose a result for at least one aspect.")
    note = replace(validate_resolution_note(note), batch=uuid4())
    choices = [validate_resolution_choice(comparison, decision.aspect, decision.choice) for decision in decisions]
    lock_comparisons([comparison.pk])
    resolutions = [
        store_resolution(comparison, replace(decision, choice=choice), note, user)
        for decision, choice in zip(decisions, choices, strict=True)
    ]
    update_labels([comparison.pk])
    return resolutions


def store_resolution(
    comparison: Comparison, decision: AspectDecision, note: ResolutionNote, user: User
) -> Adjudication:
    """Store the resolution and its event, in the transaction that locked the comparison."""
    aspect, choice = decision.aspect, decision.choice
    current = Adjudication.objects.filter(comparison=comparison, aspect=aspect).select_related("user", "aspect").first()
    entered = (user, choice, note.category, note.reason)
    if current and (current.user, current.choice, current.category, current.reason) == entered:
        return current  # a double click
    refuse_unseen_resolution(current, decision.version, f"your “{spell_choice(choice)}”")
    before = describe_resolution(current) if current else {"aspect": aspect.key}
    resolution = current or Adjudication(comparison=comparison, aspect=aspect)
    resolution.user, resolution.choice, resolution.category, resolution.reason = entered
    # Undoing would reopen the aspect instead of restoring the former resolution, so a change has no batch.
    resolution.batch, resolution.in_bulk = None if current else note.batch, note.in_bulk
    # The count includes withdrawn resolutions, so that no version is used twice.
    row = Comparison.objects.filter(pk=comparison.pk)
    row.update(resolution_count=F("resolution_count") + 1)
    resolution.version = row.values_list("resolution_count", flat=True).get()
    resolution.save()
    after = describe_resolution(resolution)
    record_event("adjudicated", comparison, user=user, evaluation=comparison.evaluation, before=before, after=after)
    return resolution


@transaction.atomic
def withdraw_resolution(adjudication: Adjudication, *, version: int, user: User) -> None:
    """Reopen the aspect: its label follows from the votes again."""
    comparison = adjudication.comparison
    refuse_archived_evaluation_of(comparison)
    lock_comparisons([comparison.pk])
    current = Adjudication.objects.filter(pk=adjudication.pk).select_related("user", "aspect").first()
    refuse_unseen_resolution(current, version, "your withdrawal")
    assert current is not None
    delete_resolution(current, comparison, user)
    update_labels([comparison.pk])


def delete_resolution(resolution: Adjudication, comparison: Comparison, user: User) -> None:
    """Delete the resolution and store its event, in the transaction that locked the comparison."""
    before, after = describe_resolution(resolution), {"aspect": resolution.aspect.key}
    record_event(
        "withdrew adjudication", comparison, user=user, evaluation=comparison.evaluation, before=before, after=after
    )
    resolution.delete()


def refuse_archived_evaluation_of(comparison: Comparison) -> None:
    refuse_archived(comparison.evaluation)


def refuse_archived(evaluation: Evaluation) -> None:
    if evaluation.archived_at is not None:
        raise InputRefused("This evaluation is archived. Restore it to resolve disagreements.")


def validate_resolution_choice(comparison: Comparison, aspect: Aspect, choice: str) -> Choice:
    """The choice, if a rubric of the evaluation that has the aspect offers it."""
    versions = RubricAspect.objects.filter(version__rubric__evaluation=comparison.evaluation_id, aspect=aspect)
    offered = {option for aspect_version in versions.select_related("aspect") for option in aspect_version.choices}
    if not offered:
        raise InputRefused(f"{aspect.name} is in no rubric of this evaluation, so it can’t be resolved.")
    if choice not in offered:
        options = ", ".join(spell_choice(option) for option in Choice if option in offered)
        raise InputRefused(f"“{choice}” is not an option for {aspect.name}. Choose {options}.")
    return Choice(choice)


def validate_resolution_note(note: ResolutionNote) -> ResolutionNote:
    reason = replace_unstorable(note.reason.strip())
    if len(reason) > MAX_REASON_LENGTH:
        raise InputRefused(f"A note can have up to {MAX_REASON_LENGTH:,} characters; this one has {len(reason):,}.")
    if note.category and note.category not in RESOLUTION_REASON_TEXTS:
        raise InputRefused("Choose one of the listed reasons, or none.")
    return replace(note, reason=reason)


def refuse_unseen_resolution(current: Adjudication | None, version: int, change: str) -> None:
    """Refuse a change of a resolution that the user has not seen."""
    if current is None and version:
        raise ResolvedElsewhere(f"Someone reopened this aspect in the meantime, so {change} was not saved.")
    if current is not None and current.version != version:
        reason = f" (“{current.reason}”)" if current.reason else ""
        raise ResolvedElsewhere(
            f"{current.user.username} resolved {current.aspect.name} as “{spell_choice(current.choice)}”{reason} "
            f"in the meantime, so {change} was not saved. Review their decision, then try again."
        )


def spell_choice(choice: str) -> str:
    return choice.replace("_", " ")


def describe_resolution(adjudication: Adjudication) -> dict[str, object]:
    """The resolution as its event stores it."""
    described: dict[str, object] = {
        "aspect": adjudication.aspect.key,
        "choice": adjudication.choice,
        "reason": adjudication.reason,
        "by": adjudication.user.username,
    }
    if adjudication.category:
        described["category"] = adjudication.category
    if adjudication.in_bulk:
        described["in_bulk"] = True
    return described


# Names in code are no mentions: they may be decorators.
CODE_PATTERN: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)

MENTION_PATTERN: Final = re.compile(r"(?<![\w.@+-])@([\w.@+-]+)")

MAX_COMMENT_LENGTH: Final = 10_000

# The same text again within this time comes from a double click.
REPEAT_WINDOW: Final = timedelta(minutes=1)


@dataclass(frozen=True)
class PostedComment:
    """``mentioned``: the users mentioned. ``unknown``: mentioned names that no reader has."""

    comment: Comment
    mentioned: Sequence[User]
    unknown: Sequence[str]


@transaction.atomic
def add_comment(
    comparison: Comparison, text: str, *, aspect: Aspect | None, user: User, readers: Iterable[User]
) -> PostedComment:
    """Add a comment to the thread, with mentions of the readers that it names."""
    if comparison.evaluation.archived_at is not None:
        raise InputRefused("This evaluation is archived. Restore it to comment.")
    if not text.strip():
        raise InputRefused("Write a comment first.")
    mentioned, unknown = find_mentioned(text, list(readers))
    if repeated := find_repeated_comment(comparison, text, aspect, user):
        return PostedComment(repeated, [], unknown)
    comment = Comment.objects.create(comparison=comparison, aspect=aspect, user=user, text=text)
    others = [reader for reader in mentioned if reader != user]
    Mention.objects.bulk_create(Mention(comment=comment, user=reader) for reader in others)
    after = {"text": text, "aspect": aspect.key if aspect else "", "mentioned": [reader.username for reader in others]}
    record_event("commented", comment, user=user, evaluation=comparison.evaluation, after=after)
    return PostedComment(comment, others, unknown)


def find_repeated_comment(comparison: Comparison, text: str, aspect: Aspect | None, user: User) -> Comment | None:
    """Find the same comment by the same user within a minute. The row lock orders two sent at once."""
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    comments = Comment.objects.filter(comparison=comparison, aspect=aspect, user=user, text=text, withdrawn_at=None)
    return comments.filter(created_at__gt=timezone.now() - REPEAT_WINDOW).order_by("pk").last()


@transaction.atomic
def withdraw_own_comment(comment: Comment, *, user: User) -> None:
    """Withdraw a comment: it stays in the thread without its text. A repeat does nothing."""
    if comment.user_id != user.pk:
        raise InputRefused("You can delete only your own comments.")
    is_withdrawn = Comment.objects.filter(pk=comment.pk, withdrawn_at__isnull=True).update(withdrawn_at=timezone.now())
    if is_withdrawn:
        evaluation = comment.comparison.evaluation
        record_event("withdrew comment", comment, user=user, evaluation=evaluation, before={"text": comment.text})


def find_mentioned(text: str, readers: Collection[User]) -> tuple[list[User], list[str]]:
    """The readers mentioned as @username, and the names that no reader has."""
    by_name = {reader.username.casefold(): reader for reader in readers}
    mentioned: dict[User, None] = {}
    unknown: dict[str, None] = {}
    for name in MENTION_PATTERN.findall(CODE_PATTERN.sub(" ", text)):
        # A name may end in a dot or a dash, and so may its sentence.
        reader = next((by_name[key] for key in iter_shortened_names(name.casefold()) if key in by_name), None)
        if reader is not None:
            mentioned[reader] = None
        else:
            unknown[name.rstrip(".-")] = None
    return list(mentioned), [name for name in unknown if name]


def iter_shortened_names(name: str) -> Iterable[str]:
    """The name, then without its last punctuation mark, and so on."""
    yield name
    while name and name[-1] in ".-+@":
        name = name[:-1]
        yield name


def mark_mentions_seen(user: User, comparison: Comparison) -> None:
    """Mark this user's mentions on the comparison as seen."""
    unseen = Mention.objects.filter(user=user, comment__comparison=comparison, seen_at__isnull=True)
    if unseen.exists():  # an update takes SQLite's one lock even where it finds nothing
        unseen.update(seen_at=timezone.now())


@transaction.atomic
def explain_own_choice(review: Review, aspect: Aspect, *, reason: str, note: str, user: User) -> None:
    """Store a reason and a note on the user's own final choice, which stays as it is."""
    if review.rater.user_id != user.pk:
        raise InputRefused("You can explain only your own choices.")
    if review.state != ReviewState.FINAL:
        raise InputRefused("Confirm your review first. Reasons belong to final choices.")
    if reason and reason not in list(DifferenceReason):
        raise InputRefused("Choose one of the listed reasons, or none.")
    after = {"reason": reason, "note": replace_unstorable(note.strip())}
    before = get_own_explanation(review, aspect)
    if before is None:
        raise InputRefused(f"You have no choice on {aspect.name} here.")
    if before == after:
        return
    for model in (Verdict, Score):
        model._default_manager.filter(review=review, aspect=aspect, stage=Stage.FINAL).update(**after)
    evaluation = review.comparison.evaluation
    after = {"aspect": aspect.key, **after}
    record_event("explained", review, user=user, evaluation=evaluation, before=before, after=after)


def get_own_explanation(review: Review, aspect: Aspect) -> dict[str, str] | None:
    """The stored reason and note; None if the review has no final choice on the aspect."""
    columns = {"review": review, "aspect": aspect, "stage": Stage.FINAL}
    row = Verdict.objects.filter(**columns).first() or Score.objects.filter(**columns).first()
    return {"reason": row.reason, "note": row.note} if row else None
