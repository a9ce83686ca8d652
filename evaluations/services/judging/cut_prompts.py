"""Prompts that a server silently cut: what its counts of tokens tell, and verdicts that were stored before it showed.

What a model at one endpoint counts is learned in each worker, from stored answers first. The check of a prompt takes
as long as reading a reply: where the count is as usual for a model that is well known, it is left out.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from django.db.models import Q
from django.db.models.functions import Now

from evaluations.domain import AttemptOutcome, AttemptStep, CallState, Message, Shown
from evaluations.judge.prompting import messages_for
from evaluations.judge.token_rates import SMALLEST_CUT, TokenRates, context_needed, profile_of
from evaluations.models import Attempt, Call, Rater, Score, Verdict
from evaluations.services import balloting
from evaluations.services.judging.judging import is_two_step, texts_of
from evaluations.services.judging.observing import SUBJECTS, latest_answered, subject_of
from evaluations.services.judging.working import Bout

CURE: Final = (
    "Give the server a larger context (Ollama: OLLAMA_CONTEXT_LENGTH, or num_ctx in the Modelfile) and ask again."
)
LEARNED_AT_FIRST: Final = 32  # stored answers
WELL_KNOWN: Final = 64  # prompts
AS_USUAL: Final = 1.1  # bytes a token, for each as usual
LONGEST_REPLY: Final = 2_048  # tokens, where the judge sets no limit


@dataclass
class Watched:
    """What a model at an endpoint was seen to count in this process. Asking and storing threads share it."""

    rates: TokenRates = field(default_factory=TokenRates)
    bytes_a_token: float = 0.0
    prompts: int = 0
    context_tokens: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def why_cut(self, messages: Sequence[Message], tokens_in: int | None) -> str:
        """Why the server must have cut this prompt, in a sentence; "" where nothing tells so."""
        if tokens_in is None or tokens_in < 1:
            return ""
        size = sum(len(message["content"].encode()) for message in messages)
        ratio = size / tokens_in
        if tokens_in < SMALLEST_CUT or self.is_usual(ratio):
            self.note(ratio)
            return ""
        profile = profile_of(messages)
        with self.lock:
            why = self.rates.cut(profile, tokens_in)
            if why is None:
                self.rates.learn(profile, tokens_in)
                self.note(ratio)
        return f"{why} {CURE}" if why else ""

    def is_usual(self, ratio: float) -> bool:
        known = self.prompts >= WELL_KNOWN and self.rates.ceiling is None
        return known and ratio <= AS_USUAL * self.bytes_a_token

    def note(self, ratio: float) -> None:
        self.prompts += 1
        self.bytes_a_token += (ratio - self.bytes_a_token) / min(self.prompts, WELL_KNOWN)

    def context_for(self, messages: Sequence[Message], max_tokens: int | None) -> int:
        """How many tokens of context to ask the server for: never fewer than before, since a change loads it anew."""
        with self.lock:
            needed = context_needed(profile_of(messages), max_tokens or LONGEST_REPLY, self.rates)
        self.context_tokens = max(self.context_tokens, needed)
        return self.context_tokens


KNOWN: Final[dict[tuple[int, str, str], Watched]] = {}


def key_of(bout: Bout) -> tuple[int, str, str]:
    endpoint = bout.judge.endpoint
    assert endpoint is not None
    return endpoint.pk, endpoint.base_url, bout.judge.model


def watch(bout: Bout) -> Watched:
    """What is known of this judge's model; at first what its stored answers tell."""
    key = key_of(bout)
    if key not in KNOWN:
        watched = Watched()
        for messages, tokens_in in stored_counts(bout):
            watched.why_cut(messages, tokens_in)
        KNOWN.setdefault(key, watched)
    return KNOWN[key]


def stored_counts(bout: Bout) -> list[tuple[list[Message], int]]:
    """First prompts of the judge's latest answers, and what the server counted, oldest first."""
    calls = {call.pk: call for call in latest_answered(bout.judge, LEARNED_AT_FIRST)}
    asked = Attempt.objects.filter(call__in=calls, step=AttemptStep.ASK, outcome=AttemptOutcome.ANSWERED, aspect="")
    rows = asked.filter(tokens_in__isnull=False).order_by("pk").values_list("call_id", "tokens_in")
    return [(messages, tokens) for pk, tokens in rows if (messages := first_messages(bout, calls[pk])) and tokens]


def first_messages(bout: Bout, call: Call) -> list[Message]:
    subject = subject_of(call)
    if subject is None:
        return []
    two_steps = is_two_step(bout.judge, bout.spec)
    return messages_for(bout.spec, texts_of(subject), Shown(call.shown), bout.judge.fence_key, two_steps=two_steps)


# ---- verdicts that were stored before it showed ----------------------------------------------


def withdraw(bout: Bout, ceiling: int) -> int:
    """Make answered calls of the run too long whose prompts were cut at this count as well; how many those are."""
    near = Q(attempts__tokens_in__gte=ceiling - 2, attempts__tokens_in__lte=ceiling + 2)
    answered = Q(state=CallState.ANSWERED, attempts__outcome=AttemptOutcome.ANSWERED, attempts__step=AttemptStep.ASK)
    calls = Call.all_rows.filter(near & answered, run=bout.run).select_related(*SUBJECTS).distinct()
    watched, sent = watch(bout), {call.pk: profile_of(first_messages(bout, call)) for call in calls}
    with watched.lock:
        cut = {pk: why for pk, profile in sent.items() if (why := watched.rates.cut(profile, ceiling))}
    if not cut:
        return 0
    mine = Call.all_rows.filter(Q(pk__in=cut) | Q(copied_from__in=cut), state=CallState.ANSWERED)
    ids = sorted(mine.values_list("pk", flat=True))
    balloting.forget_calls(ids)
    Verdict.all_rows.filter(call__in=ids).delete()
    Score.all_rows.filter(call__in=ids).delete()
    Call.all_rows.filter(pk__in=ids).update(state=CallState.TOO_LONG, error=f"{next(iter(cut.values()))} {CURE}")
    for judge in sorted(set(Call.all_rows.filter(pk__in=ids).values_list("judge", flat=True))):
        Rater.objects.filter(judge=judge).update(verdicts_changed_at=Now())
    return len(ids)
