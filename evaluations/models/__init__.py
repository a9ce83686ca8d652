"""Tables, constraints and querysets."""

from evaluations.models.comparisons import (
    Candidate,
    Comparison,
    Query,
    Rendering,
    Response,
    SavedFilter,
    Tag,
    TagChange,
    Tagging,
)
from evaluations.models.evaluations import EarlierGuidelines, Evaluation, Event, JudgeComparisonLook
from evaluations.models.exports import Export, ReviewerPseudonym
from evaluations.models.imports import ColumnMapping, Import, finished_imports
from evaluations.models.jobs import Job, Lease, Worker
from evaluations.models.judges import Endpoint, EndpointCheck, Judge, LocalServer, Price, Rater
from evaluations.models.queues import Assignment, DefaultQueue, Queue, QueueItem, QueueProgress, QueueSlot
from evaluations.models.rubrics import Aspect, Rubric, RubricAspect, RubricVersion
from evaluations.models.runs import Attempt, Batch, Call, Reparse, Run, test_call_condition
from evaluations.models.users import ApiToken, IdempotencyRecord, Membership, SignInLink, User
from evaluations.models.verdicts import Adjudication, Comment, Label, Mention, PackedVotes, Review, Score, Span, Verdict
from evaluations.models.webhooks import Delivery, DeliveryAttempt, OutboxEntry, Webhook

__all__ = [
    "Adjudication",
    "ApiToken",
    "Aspect",
    "Assignment",
    "Attempt",
    "Batch",
    "Call",
    "Candidate",
    "ColumnMapping",
    "Comment",
    "Comparison",
    "DefaultQueue",
    "Delivery",
    "DeliveryAttempt",
    "EarlierGuidelines",
    "Endpoint",
    "EndpointCheck",
    "Evaluation",
    "Event",
    "Export",
    "IdempotencyRecord",
    "Import",
    "Job",
    "Judge",
    "JudgeComparisonLook",
    "Label",
    "Lease",
    "LocalServer",
    "Membership",
    "Mention",
    "OutboxEntry",
    "PackedVotes",
    "Price",
    "Query",
    "Queue",
    "QueueItem",
    "QueueProgress",
    "QueueSlot",
    "Rater",
    "Rendering",
    "Reparse",
    "Response",
    "Review",
    "ReviewerPseudonym",
    "Rubric",
    "RubricAspect",
    "RubricVersion",
    "Run",
    "SavedFilter",
    "Score",
    "SignInLink",
    "Span",
    "Tag",
    "TagChange",
    "Tagging",
    "User",
    "Verdict",
    "Webhook",
    "Worker",
    "finished_imports",
    "test_call_condition",
]
