"""Which evaluations may use an endpoint, and what was spent there. Amounts are nano-USD."""

from datetime import date
from typing import Final

from django.db import models

from evaluations.models.base import Row
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint
from evaluations.models.users import User

FIRST_DAY: Final = date(1970, 1, 1)  # of an account that has spent nothing yet


class EndpointGrant(Row):
    """An evaluation at an endpoint: whether it may use it, within which budget, and what its runs spent there.

    A withdrawn grant keeps its row, and so has an evaluation that uses an offered endpoint without a grant: the account
    has to be right on the day when a budget is set.
    """

    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="grants")
    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="endpoint_grants")
    is_active = models.BooleanField(default=True)
    # Of all runs of the evaluation together; none is no limit.
    budget = models.BigIntegerField(null=True, blank=True)
    spent = models.BigIntegerField(default=0)
    reserved = models.BigIntegerField(default=0)
    granted_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["endpoint", "evaluation"], name="endpoint_grant_once")]

    def __str__(self) -> str:
        return f"{self.endpoint} for {self.evaluation}"


class EndpointAccount(Row):
    """What all evaluations together spent at an endpoint on the latest UTC day, and keep back for requests in flight.

    A row of its own: workers of all evaluations write it, while others lock the endpoint.
    """

    endpoint = models.OneToOneField(Endpoint, on_delete=models.CASCADE, related_name="account")
    day = models.DateField(default=FIRST_DAY)
    spent = models.BigIntegerField(default=0)
    reserved = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.endpoint} on {self.day}"


class EndpointSpending(Row):
    """The requests of one evaluation at one endpoint on one UTC day. It survives both, with their names.

    Tests of the endpoint are in a row without an evaluation and its name. ``max_cost`` is the upper bound of what
    requests of unknown cost were charged.
    """

    endpoint = models.ForeignKey(Endpoint, on_delete=models.SET_NULL, null=True, related_name="spending")
    evaluation = models.ForeignKey(Evaluation, on_delete=models.SET_NULL, null=True, related_name="endpoint_spending")
    endpoint_name = models.CharField(max_length=120)
    evaluation_name = models.CharField(max_length=200)
    day = models.DateField()
    requests = models.BigIntegerField(default=0)
    tokens_in = models.BigIntegerField(default=0)
    tokens_out = models.BigIntegerField(default=0)
    cost = models.BigIntegerField(default=0)
    max_cost = models.BigIntegerField(default=0)

    class Meta:
        verbose_name_plural = "endpoint spending"
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "evaluation", "day"], name="endpoint_spending_of_day")
        ]

    def __str__(self) -> str:
        return f"{self.evaluation_name} at {self.endpoint_name} on {self.day}"
