"""The shared words: closed lists, small frozen shapes, and the one table of consolidation.

Imports nothing of ours and nothing but the standard library, so that every room may use it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypedDict

# ---- choices -------------------------------------------------------------------------------


class Choice(StrEnum):
    """What a rater chose for one aspect of one comparison, in terms of A and B as stored."""

    A = "A"
    B = "B"
    TIE = "tie"
    BOTH_BAD = "both_bad"


class Shown(StrEnum):
    """The order in which a rater saw the two responses. Never null."""

    AS_STORED = "as_stored"
    SWAPPED = "swapped"
    UNKNOWN = "unknown"
    FOLDED = "folded"  # one choice made from both orders together


class Stage(StrEnum):
    FIRST = "first"
    FINAL = "final"


FLIPPED: Final[Mapping[Choice, Choice]] = {
    Choice.A: Choice.B,
    Choice.B: Choice.A,
    Choice.TIE: Choice.TIE,
    Choice.BOTH_BAD: Choice.BOTH_BAD,
}
INCONSISTENT: Final = "inconsistent"  # a choice value of verdict rows: both orders, disagreeing
# What two orders of the same judge say together: (choice as stored, choice swapped) -> (choice,
# inconsistent). Equal stays; anything else is a tie marked inconsistent, but tie and both_bad are
# both "no side", so they make a tie that is not inconsistent.
CONSOLIDATION: Final[Mapping[tuple[Choice, Choice], tuple[Choice, bool]]] = {
    (one, other): ((one, False) if one == other else (Choice.TIE, not {one, other} <= {Choice.TIE, Choice.BOTH_BAD}))
    for one in Choice
    for other in Choice
}


@dataclass(frozen=True)
class Folded:
    """One rater's choice on one aspect of one comparison, all orders and samples together."""

    choice: Choice
    inconsistent: bool = False


def plurality(choices: Sequence[Choice]) -> Choice:
    """The choice made most often; a tie where no single one leads. Needs at least one."""
    counts = {choice: choices.count(choice) for choice in choices}
    most = max(counts.values())
    leading = [choice for choice, count in counts.items() if count == most]
    return leading[0] if len(leading) == 1 else Choice.TIE


def fold(given: Mapping[Shown, Sequence[Folded]], asked: Set[Shown]) -> Folded | None:
    """A judge's one verdict: per order the plurality of its samples, then the orders together.

    ``given`` holds what was answered by order shown, ``asked`` every order that was asked. An
    order that was asked and has no answer makes the verdict missing: None.
    """
    if not given or any(not given.get(shown) for shown in asked):
        return None
    orders = [plurality([one.choice for one in samples]) for samples in given.values() if samples]
    choice, inconsistent = orders[0], any(one.inconsistent for samples in given.values() for one in samples)
    for other in orders[1:]:
        choice, differs = CONSOLIDATION[choice, other]
        inconsistent = inconsistent or differs
    return Folded(choice, inconsistent)


def derived_choice(score_a: float | None, score_b: float | None, margin: float) -> Choice | None:
    """What two scores say together: the higher one beyond the margin, else a tie; None where one is missing."""
    if score_a is None or score_b is None:
        return None
    # Means of decimal scores: 0.3 − 0.2 is not to be more than 0.1.
    difference = round(score_a - score_b, 9)
    if abs(difference) <= margin:
        return Choice.TIE
    return Choice.A if difference > 0 else Choice.B


def derived_remark(margin: float) -> str:
    """What must be said of such a choice wherever it is shown."""
    return f"derived from scores, margin {margin}"


# ---- who takes part ------------------------------------------------------------------------


class Role(StrEnum):
    OWNER = "owner"
    MANAGER = "manager"
    REVIEWER = "reviewer"
    ADJUDICATOR = "adjudicator"
    VIEWER = "viewer"


class RaterKind(StrEnum):
    HUMAN = "human"
    JUDGE = "judge"
    GOLD = "gold"


# The verbs of Events that decide something later.
SAW_VERDICTS: Final = "saw verdicts"  # a review made after it is not blind
DOWNLOADED: Final = "downloaded"  # an export: the same, for every comparison
MADE_ACCOUNT: Final = "made account"  # for an evaluation: its owners may make its links


# ---- material ------------------------------------------------------------------------------


class FileFormat(StrEnum):
    """What a person may say an imported file is. AUTO looks at its columns."""

    AUTO = "auto"
    COMPARISONS = "comparisons"
    RESPONSES = "responses"
    VERDICTS = "verdicts"
    PANDALM = "pandalm"
    LLMBAR = "llmbar"


class ImportState(StrEnum):
    CHECKING = "checking"
    PREVIEWED = "previewed"
    STORING = "storing"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


class ComparisonOrigin(StrEnum):
    IMPORTED = "imported"
    PAIRED = "paired"
    BY_HAND = "by_hand"


class Flag(StrEnum):
    """What makes a judged text suspect: it speaks to the judge, or imitates what only a judge or we write."""

    ADDRESSES_JUDGE = "addresses_judge"
    FORGED_VERDICT = "forged_verdict"
    FORGED_DELIMITER = "forged_delimiter"


class Message(TypedDict):
    """One chat message, as the OpenAI protocol has it."""

    role: str
    content: str


Messages = Sequence[Message]


@dataclass(frozen=True)
class PairTexts:
    """Everything a pairwise judge may read of one comparison, A and B as stored."""

    messages: Messages
    response_a: Messages
    response_b: Messages
    context: str | None = None
    reference: str | None = None


@dataclass(frozen=True)
class ResponseTexts:
    """Everything a pointwise judge may read of one response."""

    messages: Messages
    response: Messages
    context: str | None = None
    reference: str | None = None


def content_sha256(content: object) -> str:
    """The sum of any JSON value: of a response's messages, or of a query's [messages, context, reference].

    The same content gives the same sum whichever door it came through.
    """
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def text_of(messages: Messages) -> str:
    """The words of a conversation as one text: a single turn is its content alone."""
    if len(messages) == 1:
        return messages[0]["content"]
    return "\n\n".join(f"{message['role']}: {message['content']}" for message in messages)


def storable(text: str) -> str:
    """The text as every database takes it: NUL and lone surrogates become the replacement character."""
    return text.replace("\x00", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


CHARACTERS_A_TOKEN: Final = 4  # of ASCII; every other character is taken for a token of its own


def tokens_by_rule(text: str) -> float:
    """About how many tokens a text is for a model that nobody has asked: servers count 20 % fewer to 25 % more."""
    ascii_only = len(text.encode("ascii", "ignore"))
    return ascii_only / CHARACTERS_A_TOKEN + len(text) - ascii_only


# ---- rubrics -------------------------------------------------------------------------------


class RubricKind(StrEnum):
    PAIRWISE = "pairwise"
    POINTWISE = "pointwise"


class RubricOrigin(StrEnum):
    BUILTIN = "builtin"
    OWN = "own"
    IMPORTED = "imported"


@dataclass(frozen=True)
class AspectSpec:
    """What a rubric version asks about one aspect.

    ``labels`` maps a Choice to the label that the judge is to use for it where that differs
    from the choice itself (``{"tie": "SAME"}``). The scale is None for pairwise aspects; a step of
    None allows every number between its ends. ``scale_labels`` says what values or bands mean
    (``{"5": "very good: …", "0.1 - 0.3": "…"}``), in the order in which they are shown.
    ``tie_margin``: two scores that differ by at most this much make a tie. ``reply_key`` is what
    the reply calls the aspect where that is not its key.
    """

    key: str
    name: str
    definition: str
    offers_tie: bool = True
    offers_both_bad: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    scale_min: float | None = None
    scale_max: float | None = None
    scale_step: float | None = None
    scale_labels: Mapping[str, str] = field(default_factory=dict)
    tie_margin: float = 0.0
    reply_key: str = ""

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The choices offered, in the order in which pages show them: A, tie, both bad, B."""
        offered = [Choice.A]
        if self.offers_tie:
            offered.append(Choice.TIE)
        if self.offers_both_bad:
            offered.append(Choice.BOTH_BAD)
        return (*offered, Choice.B)

    def label(self, choice: Choice) -> str:
        return self.labels.get(choice, str(choice))


@dataclass(frozen=True)
class RubricSpec:
    """A rubric version without its database row.

    ``aspects`` stand in page order, ``output_order`` holds their keys in the order of the reply.
    ``placeholders`` maps a placeholder of a pasted text, braces included (``{$candidate_A}``),
    to a field name (``response_a``); empty for the built-in layout.
    ``answer_format`` is ``json``, ``two_step`` (a free-text evaluation first, its verdict after)
    or ``text`` with a pattern of the verdict after a colon.
    ``rationale_key`` and ``choices_key`` are what the reply calls its reasons and the object of its
    verdicts; an empty ``choices_key`` puts the verdicts beside the reasons.
    """

    kind: RubricKind
    instructions: str
    aspects: tuple[AspectSpec, ...]
    output_order: tuple[str, ...]
    placeholders: Mapping[str, str] = field(default_factory=dict)
    answer_format: str = "json"
    few_shot: tuple[Mapping[str, Any], ...] = ()
    rationale_key: str = "rationale"
    choices_key: str = "choices"


# ---- judges and their runs -----------------------------------------------------------------


class JudgeKind(StrEnum):
    LLM = "llm"
    RULE = "rule"
    IMPORTED = "imported"


BASELINE_REMARK: Final = "baseline, not an LLM"  # stands wherever a rule judge is named
# What each rule judge does, by the name that stands as its model.
RULES_IN_WORDS: Final[Mapping[str, str]] = {
    "longest": "the longer response wins every aspect; where they differ by 5 % or less it is a tie",
    "first": "the response shown first wins every aspect, whatever it says",
    "random": "A, tie or B is drawn by the seed for each comparison, order and aspect, the same every time",
}


class AskingMode(StrEnum):
    """How a judge is asked for its answer.

    AUTO finds out before the first verdict which shape its server takes. TWO_STEP asks for free
    text first, and then, in the same conversation, for the verdict alone.
    """

    AUTO = "auto"
    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    TEXT = "text"
    TWO_STEP = "two_step"


class ReplyShape(StrEnum):
    """What holds a verdict to its form: the server by a schema, the server by JSON alone, or the prompt alone."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    TEXT = "text"


class Orders(StrEnum):
    """Which orders a run asks for."""

    BOTH = "both"
    RANDOM = "random"
    AS_STORED = "as-stored"
    SWAPPED = "swapped"


class Channel(StrEnum):
    """How a run's requests travel: each by itself, or many as one file of the Batch API."""

    LIVE = "live"
    BATCH = "batch"


class RunState(StrEnum):
    PLANNING = "planning"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    CANCELLED = "cancelled"
    STOPPED = "stopped"  # by a fault that only a person can mend; stop_reason says which


ACTIVE_RUN_STATES: Final = (RunState.PLANNING, RunState.RUNNING, RunState.PAUSED)


class CallState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    ANSWERED = "answered"
    UNREADABLE = "unreadable"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    TOO_LONG = "too_long"
    FAILED = "failed"
    CANCELLED = "cancelled"


FAILURE_STATES: Final = (
    CallState.UNREADABLE,
    CallState.REFUSED,
    CallState.TRUNCATED,
    CallState.TOO_LONG,
    CallState.FAILED,
)
OPEN_CALL_STATES: Final = (CallState.PENDING, CallState.RUNNING)


class AttemptStep(StrEnum):
    """What a request of a Call asks for; on the Call, what is asked next.

    REPAIR follows an unreadable reply and says what was wrong with it; SCORE follows a free-text
    evaluation and asks for its verdict. Both stand in the conversation that ASK began.
    """

    ASK = "ask"
    REPAIR = "repair"
    SCORE = "score"


class AttemptOutcome(StrEnum):
    """What became of one request.

    RETRY: the call went back to wait and was asked again. LOST: the worker that sent it was
    killed before the answer was stored; what it cost is not known.
    """

    ANSWERED = "answered"
    UNREADABLE = "unreadable"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    TOO_LONG = "too_long"
    FAILED = "failed"
    RETRY = "retry"
    STOPPED = "stopped"
    LOST = "lost"


class BatchState(StrEnum):
    SENDING = "sending"  # the file is being made and uploaded; nothing was bought yet
    SUBMITTED = "submitted"
    COLLECTING = "collecting"  # the server has ended it; its answers are being stored
    DONE = "done"
    FAILED = "failed"  # nothing of it was answered; its calls wait again


OPEN_BATCH_STATES: Final = (BatchState.SENDING, BatchState.SUBMITTED, BatchState.COLLECTING)


@dataclass(frozen=True)
class Token:
    """One token of a reply as its bytes, how likely it was, and the likeliest that could have stood there."""

    text: bytes
    logprob: float
    likeliest: tuple[tuple[bytes, float], ...] = ()


# ---- reviews -------------------------------------------------------------------------------


class Reveal(StrEnum):
    """When reviewers see the judge's choices."""

    BLIND = "blind"  # after their first save
    SHOWN = "shown"  # from the start
    NEVER = "never"
    RANDOMISED = "randomised"  # blind or shown, drawn per comparison


class ReviewState(StrEnum):
    DRAFT = "draft"
    FIRST = "first"  # first choices saved, judge revealed, final ones not confirmed yet
    FINAL = "final"
    SKIPPED = "skipped"


SAVED_REVIEW_STATES: Final = (ReviewState.FIRST, ReviewState.FINAL)


class Reason(StrEnum):
    """Why a person differs from the judge or from other people."""

    MISSED_ERROR = "missed_error"
    LENGTH_OR_FORMAT = "length_or_format"
    POSITION = "position"
    IGNORED_INSTRUCTION = "ignored_instruction"
    RUBRIC_UNCLEAR = "rubric_unclear"
    QUERY_AMBIGUOUS = "query_ambiguous"
    BOTH_ACCEPTABLE = "both_acceptable"
    MY_MISTAKE = "my_mistake"
    OTHER = "other"


REASONS_IN_WORDS: Final[Mapping[Reason, str]] = {
    Reason.MISSED_ERROR: "judge missed a factual error",
    Reason.LENGTH_OR_FORMAT: "judged by length or format",
    Reason.POSITION: "judged by position",
    Reason.IGNORED_INSTRUCTION: "ignored the instruction",
    Reason.RUBRIC_UNCLEAR: "rubric unclear",
    Reason.QUERY_AMBIGUOUS: "query ambiguous",
    Reason.BOTH_ACCEPTABLE: "both acceptable",
    Reason.MY_MISTAKE: "my mistake",
    Reason.OTHER: "other",
}


# ---- the queue -----------------------------------------------------------------------------


class RoundKind(StrEnum):
    REVIEW = "review"
    CALIBRATION = "calibration"  # a few comparisons with known labels, before a reviewer begins


class PickedBy(StrEnum):
    """How a comparison came before a person.

    RANDOM: it was its turn in the one random order that was drawn when it came in. The next five
    are strategies: of them STRATIFIED alone leaves a known probability. CALIBRATION: it has a known
    label. BY_HAND: the person opened it, or was given it by name outside any round.
    """

    RANDOM = "random"
    STRATIFIED = "stratified"
    FLIPS = "flips"
    JUDGES_DISAGREE = "judges_disagree"
    PEOPLE_DISAGREE = "people_disagree"
    LEAST_CONFIDENT = "least_confident"
    CALIBRATION = "calibration"
    BY_HAND = "by_hand"


# The strategies that a round may state, and the ways of picking whose reviews estimates may use.
STRATEGIES: Final = (
    PickedBy.RANDOM,
    PickedBy.STRATIFIED,
    PickedBy.FLIPS,
    PickedBy.JUDGES_DISAGREE,
    PickedBy.PEOPLE_DISAGREE,
    PickedBy.LEAST_CONFIDENT,
)
DRAWN: Final = (PickedBy.RANDOM, PickedBy.STRATIFIED)
PICKED_IN_WORDS: Final[Mapping[PickedBy, str]] = {
    PickedBy.RANDOM: "at random",
    PickedBy.STRATIFIED: "at random, in strata",
    PickedBy.FLIPS: "a judge flips between orders",
    PickedBy.JUDGES_DISAGREE: "judges disagree",
    PickedBy.PEOPLE_DISAGREE: "people disagree",
    PickedBy.LEAST_CONFIDENT: "a judge is least confident",
    PickedBy.CALIBRATION: "calibration",
    PickedBy.BY_HAND: "by hand",
}


class Strata(StrEnum):
    """What a stratified round draws equally from."""

    CATEGORY = "category"
    CANDIDATE_PAIR = "candidate_pair"


class AssignmentState(StrEnum):
    """HELD, NAMED and DONE take one of the places of a comparison, SKIPPED and LAPSED leave it to others."""

    HELD = "held"  # taken from the pool, for a while
    NAMED = "named"  # given to this person by name, without an end
    DONE = "done"
    SKIPPED = "skipped"
    LAPSED = "lapsed"  # held for too long; how it was picked is still known when the person comes back


# The states of an assignment that take one of the places of a comparison.
PLACES_TAKEN: Final = (AssignmentState.HELD, AssignmentState.NAMED, AssignmentState.DONE)


# ---- labels, reports and exports -----------------------------------------------------------


class LabelPolicy(StrEnum):
    """What a label may rest on. A split among people is an open disagreement under either."""

    PEOPLE_THEN_JUDGES = "people_then_judges"
    PEOPLE = "people"


class LabelSource(StrEnum):
    """Where the label of a comparison and aspect comes from."""

    ADJUDICATED = "adjudicated"  # settled by an adjudicator
    MAJORITY = "majority"  # the one choice that most of several votes of people share
    SINGLE = "single"  # the only vote of a person there is
    SPLIT = "split"  # no single choice leads: an open disagreement, and no label
    PANEL = "panel"  # no person voted; what most judges of a panel chose
    JUDGE = "judge"  # no person voted; what one judge chose


class SplitRule(StrEnum):
    """What becomes of a majority where no single choice leads."""

    TIE = "tie"
    DROP = "drop"
    FIRST = "first"  # of the leading choices the one that was made first


class FailedRule(StrEnum):
    """What becomes of a judge's verdict that is missing because calls failed."""

    EXCLUDE = "exclude"
    TIE = "tie"


class Coding(StrEnum):
    """What the two sides of a table mean: the candidates, or the places in which they were shown."""

    CANDIDATE = "candidate"
    SHOWN = "shown"


@dataclass(frozen=True)
class Rules:
    """How a report is to be computed. ``where`` holds key and value pairs that must all hold."""

    raters: str = "*"
    where: tuple[tuple[str, str], ...] = ()
    coding: Coding = Coding.CANDIDATE
    split_rule: SplitRule = SplitRule.TIE
    failed: FailedRule = FailedRule.EXCLUDE


class ExportState(StrEnum):
    UNFINISHED = "unfinished"
    DONE = "done"
    FAILED = "failed"


# ---- rows of files -------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """How a person asked for a file to be read.

    ``mapping`` gives a column another name, ``id_prefix`` goes before every query id, ``rater``
    and ``rater_kind`` speak for verdicts whose row names none.
    """

    format: str = FileFormat.AUTO
    id_prefix: str = ""
    mapping: Mapping[str, str] = field(default_factory=dict)
    rater: str = ""
    rater_kind: RaterKind | None = None


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be stored. ``line`` counts from 1 as an editor shows it."""

    line: int
    reason: str


@dataclass(frozen=True)
class QueryPart:
    """The query that a row of a file speaks of. ``messages`` end with the user's turn."""

    key: str
    cluster: str
    messages: Messages
    context: str | None = None
    reference: str | None = None
    category: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ComparisonRow:
    """A row that brings a query and two responses. A response of None was not supplied."""

    line: int
    query: QueryPart
    candidate_a: str
    response_a: Messages
    candidate_b: str
    response_b: Messages
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ResponseRow:
    """A row that brings a query and one response; pairs are made afterwards."""

    line: int
    query: QueryPart
    candidate: str
    response: Messages
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class VerdictRow:
    """A row that brings one rater's choice.

    ``choice`` is a Choice value, ``inconsistent`` or a failure state of a call. Where the file
    names no candidates both are None: the query must then have one comparison, and A means the
    response that stood first in the file it came from. ``expected_texts`` (query, first response,
    second response), where given, must equal what is stored.
    """

    line: int
    query_key: str
    candidate_a: str | None
    candidate_b: str | None
    rater: str
    rater_kind: RaterKind
    aspect: str
    choice: str
    shown: Shown = Shown.UNKNOWN
    sample: int | None = None
    rationale: str = ""
    note: str = ""
    created_at: str | None = None
    expected_texts: tuple[str, str, str] | None = None


@dataclass(frozen=True)
class ScoreRow:
    """A row that brings one rater's number for one response."""

    line: int
    query_key: str
    candidate: str
    rater: str
    rater_kind: RaterKind
    aspect: str
    value: float
    sample: int | None = None
    rationale: str = ""


Row = ComparisonRow | ResponseRow | VerdictRow | ScoreRow | BadRow


# ---- what is refused -----------------------------------------------------------------------


class InputRefused(Exception):
    """What was given cannot be taken; the one sentence says what, where, and what to do.

    Every door shows it as it stands: a page as an error on its form, a command as its last line.
    """


# ---- money ---------------------------------------------------------------------------------

NANO: Final = 10**9  # nano-USD in a USD: amounts are whole numbers of them


def exact_usd(nano: int) -> str:
    """The amount in USD, every figure of it and no zeros after them."""
    whole, rest = divmod(abs(nano), NANO)
    places = f"{rest:09}".rstrip("0").ljust(2, "0")
    return f"{'-' if nano < 0 else ''}{whole}.{places}"
