"""Resolutions, comments and explanations of choices."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.choices import Choice, Stage
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import DifferenceReason, ReviewState
from evaluations.domain.texts import replace_unstorable
from evaluations.models.comparisons import Comparison
from evaluations.models.rubrics import Aspect, RubricAspect
from evaluations.models.users import User
from evaluations.models.verdicts import Adjudication, Comment, Mention, Review, Score, Verdict
from evaluations.verdicts.votes import lock_comparisons, update_labels

MAX_REASON_LENGTH: Final = 5_000


class ResolvedElsewhere(InputRefused):
    """Somebody else resolved the aspect or withdrew its resolution in the meantime; nothing was stored."""


@transaction.atomic
def resolve_aspect(
    comparison: Comparison, aspect: Aspect, *, choice: str, reason: str, version: int, user: User
) -> Adjudication:
    """Resolve the aspect. ``version``: of the resolution that the user saw, 0 if there was none."""
    refuse_archived_evaluation_of(comparison)
    choice, reason = validate_resolution_choice(comparison, aspect, choice), validate_resolution_reason(reason)
    lock_comparisons([comparison.pk])
    current = Adjudication.objects.filter(comparison=comparison, aspect=aspect).select_related("user").first()
    if current and (current.user, current.choice, current.reason) == (user, choice, reason):
        return current  # a double click
    refuse_unseen_resolution(current, version, f"your “{spell_choice(choice)}”")
    before = describe_resolution(current) if current else {"aspect": aspect.key}
    resolution = current or Adjudication(comparison=comparison, aspect=aspect)
    resolution.user, resolution.choice, resolution.reason = user, choice, reason
    # The count includes withdrawn resolutions, so that no version is used twice.
    row = Comparison.objects.filter(pk=comparison.pk)
    row.update(resolution_count=F("resolution_count") + 1)
    resolution.version = row.values_list("resolution_count", flat=True).get()
    resolution.save()
    after = describe_resolution(resolution)
    record_event("adjudicated", comparison, user=user, evaluation=comparison.evaluation, before=before, after=after)
    update_labels([comparison.pk])
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
    before, after = describe_resolution(current), {"aspect": current.aspect.key}
    record_event(
        "withdrew adjudication", comparison, user=user, evaluation=comparison.evaluation, before=before, after=after
    )
    current.delete()
    update_labels([comparison.pk])


def refuse_archived_evaluation_of(comparison: Comparison) -> None:
    if comparison.evaluation.archived_at is not None:
        raise InputRefused("This evaluation is archived: nothing can be settled in it until it is brought back.")


def validate_resolution_choice(comparison: Comparison, aspect: Aspect, choice: str) -> Choice:
    """The choice, if a rubric of the evaluation that has the aspect offers it."""
    versions = RubricAspect.objects.filter(version__rubric__evaluation=comparison.evaluation_id, aspect=aspect)
    offered = {option for aspect_version in versions.select_related("aspect") for option in aspect_version.choices}
    if not offered:
        raise InputRefused(f"No rubric of this evaluation asks about {aspect.name}: nothing can be settled.")
    if choice not in offered:
        options = ", ".join(spell_choice(option) for option in Choice if option in offered)
        raise InputRefused(f"No rubric offers “{choice}” for {aspect.name}: it is one of {options}.")
    return Choice(choice)


def validate_resolution_reason(reason: str) -> str:
    reason = replace_unstorable(reason.strip())
    if not reason:
        raise InputRefused("Say why: the reason stands beside the label, for those who chose otherwise.")
    if len(reason) > MAX_REASON_LENGTH:
        raise InputRefused(f"A reason has at most {MAX_REASON_LENGTH:,} characters; this one has {len(reason):,}.")
    return reason


def refuse_unseen_resolution(current: Adjudication | None, version: int, change: str) -> None:
    """Refuse a change of a resolution that the user has not seen."""
    if current is None and version:
        raise ResolvedElsewhere(f"The adjudication was withdrawn meanwhile, so {change} was not stored. Look again.")
    if current is not None and current.version != version:
        raise ResolvedElsewhere(
            f"{current.user.username} settled this as “{spell_choice(current.choice)}” meanwhile "
            f"(“{current.reason}”), so {change} was not stored. Look at theirs, then decide again."
        )


def spell_choice(choice: str) -> str:
    return choice.replace("_", " ")


def describe_resolution(adjudication: Adjudication) -> dict[str, object]:
    """The resolution as its event stores it."""
    return {
        "aspect": adjudication.aspect.key,
        "choice": adjudication.choice,
        "reason": adjudication.reason,
        "by": adjudication.user.username,
    }


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
        raise InputRefused("This evaluation is archived: nothing can be said in it until it is brought back.")
    if not text.strip():
        raise InputRefused("Write something first: an empty comment was not stored.")
    called, unknown = find_mentioned(text, list(readers))
    if repeated := find_repeated_comment(comparison, text, aspect, user):
        return PostedComment(repeated, [], unknown)
    comment = Comment.objects.create(comparison=comparison, aspect=aspect, user=user, text=text)
    others = [reader for reader in called if reader != user]
    Mention.objects.bulk_create(Mention(comment=comment, user=reader) for reader in others)
    after = {"text": text, "aspect": aspect.key if aspect else "", "called": [reader.username for reader in others]}
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
        raise InputRefused("Only who wrote a comment can withdraw it.")
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
        raise InputRefused("Only who made a choice can say why.")
    if review.state != ReviewState.FINAL:
        raise InputRefused("Confirm your choices first: a reason stands on the final ones.")
    if reason and reason not in list(DifferenceReason):
        raise InputRefused("Choose one of the reasons, or none.")
    after = {"reason": reason, "note": replace_unstorable(note.strip())}
    before = get_own_explanation(review, aspect)
    if before is None:
        raise InputRefused(f"You made no choice on {aspect.name} here.")
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
