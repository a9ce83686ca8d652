"""What people say to each other about a comparison, and whom they call."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from evaluations.domain import InputRefused
from evaluations.models import Aspect, Comment, Comparison, Mention, User
from evaluations.services.recording import record

# What stands as code calls nobody: a decorator is no person.
CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
CALL: Final = re.compile(r"(?<![\w.@+-])@([\w.@+-]+)")
LONGEST: Final = 10_000
# The same words again within this time are the second half of a double click.
SENT_TWICE: Final = timedelta(minutes=1)


@dataclass(frozen=True)
class Posted:
    """``called``: who is told. ``unknown``: names that are nobody's who could read it."""

    comment: Comment
    called: Sequence[User]
    unknown: Sequence[str]


@transaction.atomic
def post(comparison: Comparison, text: str, *, aspect: Aspect | None, user: User, readers: Iterable[User]) -> Posted:
    """Add to the thread, and call those of the readers whom it names."""
    if comparison.evaluation.archived_at is not None:
        raise InputRefused("This evaluation is archived: nothing can be said in it until it is brought back.")
    if not text.strip():
        raise InputRefused("Write something first: an empty comment was not stored.")
    called, unknown = called_in(text, list(readers))
    if same := said_just_now(comparison, text, aspect, user):
        return Posted(same, [], unknown)
    comment = Comment.objects.create(comparison=comparison, aspect=aspect, user=user, text=text)
    others = [reader for reader in called if reader != user]
    Mention.objects.bulk_create(Mention(comment=comment, user=reader) for reader in others)
    after = {"text": text, "aspect": aspect.key if aspect else "", "called": [one.username for one in others]}
    record("commented", comment, user=user, evaluation=comparison.evaluation, after=after)
    return Posted(comment, others, unknown)


def said_just_now(comparison: Comparison, text: str, aspect: Aspect | None, user: User) -> Comment | None:
    """The same words of the same person, that stand. Of two sent at once the second waits for the first."""
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    same = Comment.objects.filter(comparison=comparison, aspect=aspect, user=user, text=text, withdrawn_at=None)
    return same.filter(created_at__gt=timezone.now() - SENT_TWICE).order_by("pk").last()


@transaction.atomic
def withdraw(comment: Comment, *, user: User) -> None:
    """Take back one's own words: the place stays, and says so. Twice is once."""
    if comment.user_id != user.pk:
        raise InputRefused("Only who wrote a comment can withdraw it.")
    taken = Comment.objects.filter(pk=comment.pk, withdrawn_at__isnull=True).update(withdrawn_at=timezone.now())
    if taken:
        evaluation = comment.comparison.evaluation
        record("withdrew comment", comment, user=user, evaluation=evaluation, before={"text": comment.text})


def called_in(text: str, readers: Collection[User]) -> tuple[list[User], list[str]]:
    """The readers whom a text names as @username, and the names that are none of theirs."""
    by_name = {reader.username.casefold(): reader for reader in readers}
    called: dict[User, None] = {}
    unknown: dict[str, None] = {}
    for name in CALL.findall(CODE.sub(" ", text)):
        # A name may end in a dot or a dash, and so may the sentence that it stands in.
        meant = next((by_name[one] for one in shortened(name.casefold()) if one in by_name), None)
        if meant is not None:
            called[meant] = None
        else:
            unknown[name.rstrip(".-")] = None
    return list(called), [name for name in unknown if name]


def shortened(name: str) -> Iterable[str]:
    yield name
    while name and name[-1] in ".-+@":
        name = name[:-1]
        yield name


def thread(comparison: Comparison) -> list[Comment]:
    """Oldest first."""
    return list(comparison.comments.select_related("user", "aspect").order_by("pk"))


# ---- being called ---------------------------------------------------------------------------


def mentions_of(user: User, readable: QuerySet[Comparison]) -> QuerySet[Mention]:
    """Where a comment that stands calls this person, on comparisons that they may see."""
    standing = Mention.objects.filter(user=user, comment__withdrawn_at__isnull=True)
    return standing.filter(comment__comparison__in=readable)


def is_called(user: User) -> bool:
    """Whether anything calls this person and was not seen, readable or not: asked on every page, and mostly no."""
    return Mention.objects.filter(user=user, seen_at__isnull=True).exists()


def unseen(user: User, readable: QuerySet[Comparison]) -> int:
    return mentions_of(user, readable).filter(seen_at__isnull=True).count()


def note_read(user: User, comparison: Comparison) -> None:
    """The thread stands before this person: what calls them in it was seen."""
    waiting = Mention.objects.filter(user=user, comment__comparison=comparison, seen_at__isnull=True)
    if waiting.exists():  # an update takes SQLite's one lock even where it finds nothing
        waiting.update(seen_at=timezone.now())
