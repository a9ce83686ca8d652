"""Tables, constraints, and querysets that read like sentences."""

from evaluations.models.adjudication import Adjudication, Comment, Label, Mention, Span
from evaluations.models.ballots import Ballot
from evaluations.models.evaluations import Evaluation, Event, Look
from evaluations.models.exports import Alias, Export
from evaluations.models.finding import Slice, Tag, Tagging, TagWork
from evaluations.models.hooks import Announcement, Delivery, DeliveryTry, Webhook
from evaluations.models.jobs import JobStart
from evaluations.models.judges import Endpoint, Handshake, Judge, LocalServer, Price, Rater
from evaluations.models.mappings import ColumnMapping
from evaluations.models.material import Candidate, Comparison, Import, Query, Response, finished_imports
from evaluations.models.people import Membership, SignInLink, User
from evaluations.models.renderings import Rendering
from evaluations.models.rounds import Assignment, Bookmark, Pick, Queue, QueueItem, Round
from evaluations.models.rubrics import Aspect, Rubric, RubricAspect, RubricVersion
from evaluations.models.runs import Attempt, Batch, Call, Run, Worker, of_test_calls
from evaluations.models.searching import Indexing
from evaluations.models.tokens import ApiToken, KeptAnswer
from evaluations.models.verdicts import Review, Score, Verdict

__all__ = [
    "Adjudication",
    "Alias",
    "Announcement",
    "ApiToken",
    "Aspect",
    "Assignment",
    "Attempt",
    "Ballot",
    "Batch",
    "Bookmark",
    "Call",
    "Candidate",
    "ColumnMapping",
    "Comment",
    "Comparison",
    "Delivery",
    "DeliveryTry",
    "Endpoint",
    "Evaluation",
    "Event",
    "Export",
    "Handshake",
    "Import",
    "Indexing",
    "JobStart",
    "Judge",
    "KeptAnswer",
    "Label",
    "LocalServer",
    "Look",
    "Membership",
    "Mention",
    "Pick",
    "Price",
    "Query",
    "Queue",
    "QueueItem",
    "Rater",
    "Rendering",
    "Response",
    "Review",
    "Round",
    "Rubric",
    "RubricAspect",
    "RubricVersion",
    "Run",
    "Score",
    "SignInLink",
    "Slice",
    "Span",
    "Tag",
    "TagWork",
    "Tagging",
    "User",
    "Verdict",
    "Webhook",
    "Worker",
    "finished_imports",
    "of_test_calls",
]
