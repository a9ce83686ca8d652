"""Detection of prompts that a server cut silently, by its token counts.

Each worker learns the token counts of a model at an endpoint, from stored answers first.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from django.db.models import Q

from evaluations.domain.choices import ShownOrder
from evaluations.domain.judges import AttemptOutcome, AttemptStep, CallState
from evaluations.domain.texts import Message
from evaluations.judge_prompts.prompt_builder import build_messages
from evaluations.judges.calls.answer_rows import delete_answers
from evaluations.judges.calls.conversations import SUBJECT_RELATIONS, call_subject, find_latest_answered_calls
from evaluations.judges.calls.work_session import WorkSession
from evaluations.judges.sql import touch_raters
from evaluations.llm.token_rates import MIN_CUT_TOKENS, TokenRates, profile_prompt, required_context
from evaluations.models.runs import Attempt, Call

TRUNCATION_REMEDY: Final = (
    "Increase the server’s context (Ollama: OLLAMA_CONTEXT_LENGTH, or num_ctx in the Modelfile) and retry."
)
INITIAL_SAMPLES: Final = 32  # stored answers
WELL_KNOWN_AFTER: Final = 64  # prompts
USUAL_FACTOR: Final = 1.1  # of the usual bytes per token
MAX_REPLY_TOKENS: Final = 2_048  # tokens, if the judge sets no limit


@dataclass
class TruncationWatch:
    """Token counts of a model at an endpoint, as seen by this process."""

    rates: TokenRates = field(default_factory=TokenRates)
    bytes_a_token: float = 0.0
    prompts: int = 0
    context_tokens: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def find_cut(self, messages: Sequence[Message], tokens_in: int | None) -> str:
        """Why the server must have cut this prompt, as a sentence; "" if nothing shows it."""
        if tokens_in is None or tokens_in < 1:
            return ""
        size = sum(len(message["content"].encode()) for message in messages)
        ratio = size / tokens_in
        if tokens_in < MIN_CUT_TOKENS or self.is_usual(ratio):
            self.learn_ratio(ratio)
            return ""
        profile = profile_prompt(messages)
        with self.lock:
            why = self.rates.cut(profile, tokens_in)
            if why is None:
                self.rates.learn(profile, tokens_in)
                self.learn_ratio(ratio)
        return f"{why} {TRUNCATION_REMEDY}" if why else ""

    def is_usual(self, ratio: float) -> bool:
        is_well_known = self.prompts >= WELL_KNOWN_AFTER and self.rates.ceiling is None
        return is_well_known and ratio <= USUAL_FACTOR * self.bytes_a_token

    def learn_ratio(self, ratio: float) -> None:
        self.prompts += 1
        self.bytes_a_token += (ratio - self.bytes_a_token) / min(self.prompts, WELL_KNOWN_AFTER)

    def context_size(self, messages: Sequence[Message], max_tokens: int | None) -> int:
        """Tokens of context to request; never fewer than before, since every change loads the model again."""
        with self.lock:
            needed = required_context(profile_prompt(messages), max_tokens or MAX_REPLY_TOKENS, self.rates)
        self.context_tokens = max(self.context_tokens, needed)
        return self.context_tokens


WATCHES: Final[dict[tuple[int, str, str], TruncationWatch]] = {}


def watch_truncation(session: WorkSession) -> TruncationWatch:
    """The watch of this judge's model, which starts from stored answers."""
    endpoint = session.judge.endpoint
    assert endpoint is not None
    key = (endpoint.pk, endpoint.base_url, session.judge.model)
    if key not in WATCHES:
        watch = TruncationWatch()
        for messages, tokens_in in load_stored_counts(session):
            watch.find_cut(messages, tokens_in)
        WATCHES.setdefault(key, watch)
    return WATCHES[key]


def load_stored_counts(session: WorkSession) -> list[tuple[list[Message], int]]:
    """First prompts of the judge's latest answers with the server's token counts, oldest first."""
    calls = {call.pk: call for call in find_latest_answered_calls(session.judge, INITIAL_SAMPLES)}
    attempts = Attempt.objects.filter(call__in=calls, step=AttemptStep.ASK, outcome=AttemptOutcome.ANSWERED, aspect="")
    rows = attempts.filter(tokens_in__isnull=False).order_by("pk").values_list("call_id", "tokens_in")
    return [(rebuild_first_messages(session, calls[pk]), tokens) for pk, tokens in rows if tokens]


def rebuild_first_messages(session: WorkSession, call: Call) -> list[Message]:
    texts, shown = call_subject(call).judged_texts(), ShownOrder(call.shown)
    return build_messages(session.spec, texts, shown, session.judge.fence_key, two_steps=session.two_steps)


def withdraw_truncated_answers(session: WorkSession, ceiling: int) -> int:
    """Mark answered calls of the run as too long if their prompts were cut at this count; returns how many."""
    near = Q(attempts__tokens_in__range=(ceiling - 2, ceiling + 2))
    answered = Q(state=CallState.ANSWERED, attempts__outcome=AttemptOutcome.ANSWERED, attempts__step=AttemptStep.ASK)
    calls = Call.all_rows.filter(near & answered, run=session.run).select_related(*SUBJECT_RELATIONS).distinct()
    watch = watch_truncation(session)
    sent = {call.pk: profile_prompt(rebuild_first_messages(session, call)) for call in calls}
    with watch.lock:
        cut = {pk: why for pk, profile in sent.items() if (why := watch.rates.cut(profile, ceiling))}
    if not cut:
        return 0
    mine = Call.all_rows.filter(Q(pk__in=cut) | Q(copied_from__in=cut), state=CallState.ANSWERED)
    ids = sorted(mine.values_list("pk", flat=True))
    delete_answers(ids)
    truncated = Call.all_rows.filter(pk__in=ids)
    truncated.update(state=CallState.TOO_LONG, error=f"{next(iter(cut.values()))} {TRUNCATION_REMEDY}")
    touch_raters(truncated)
    return len(ids)
