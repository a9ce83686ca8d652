"""Tables, constraints, and querysets that read like sentences."""

from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.exports import Export
from evaluations.models.judges import Endpoint, Judge, LocalServer, Price, Rater
from evaluations.models.material import Candidate, Comparison, Import, Query, Response, finished_imports
from evaluations.models.people import Membership, SignInLink, User
from evaluations.models.rubrics import Aspect, Rubric, RubricAspect, RubricVersion
from evaluations.models.runs import Attempt, Batch, Call, Run, Worker
from evaluations.models.verdicts import Review, Score, Verdict

__all__ = [
    "Aspect",
    "Attempt",
    "Batch",
    "Call",
    "Candidate",
    "Comparison",
    "Endpoint",
    "Evaluation",
    "Event",
    "Export",
    "Import",
    "Judge",
    "LocalServer",
    "Membership",
    "Price",
    "Query",
    "Rater",
    "Response",
    "Review",
    "Rubric",
    "RubricAspect",
    "RubricVersion",
    "Run",
    "Score",
    "SignInLink",
    "User",
    "Verdict",
    "Worker",
    "finished_imports",
]
