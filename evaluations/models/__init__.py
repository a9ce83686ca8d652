"""Tables, constraints and querysets. Django finds the tables here."""

from evaluations.models import (  # noqa: F401
    comparisons,
    endpoint_grants,
    evaluations,
    exports,
    imports,
    jobs,
    judges,
    progress,
    queues,
    reports,
    results,
    rubrics,
    runs,
    sign_ins,
    users,
    verdicts,
    webhooks,
)
