"""The forms that start a run or retry failed calls."""

from collections.abc import Mapping

from django import forms
from django.http import QueryDict

from evaluations.domain.judges import JudgeKind, RunChannel, RunOrders
from evaluations.judges.runs.selection import RETRYABLE_STATES, RunOptions
from evaluations.judges.runs.selectors import list_runnable_judges
from evaluations.models.comparisons import SavedFilter
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge
from evaluations.web.forms import BudgetField, RowsField

ORDER_CHOICES = [
    (RunOrders.BOTH, "both orders"),
    (RunOrders.RANDOM, "one order, drawn at random"),
    (RunOrders.AS_STORED, "A first"),
    (RunOrders.SWAPPED, "B first"),
]

CHANNEL_CHOICES = [
    (RunChannel.LIVE, "one by one, as fast as the endpoint allows"),
    (RunChannel.BATCH, "through the Batch API: about half the price, answers within a day"),
]


class RunForm(forms.Form):
    judge = RowsField(
        Judge.objects.none(),
        label="Judges",
        error_messages={"required": "Choose at least one judge.", "invalid_choice": "One of these is no judge here."},
    )
    orders = forms.ChoiceField(
        choices=ORDER_CHOICES,
        initial=RunOrders.BOTH,
        label="Order of the two responses",
        help_text="Both orders ask each comparison twice and show whether the judge leans to one place. With A or B "
        "always first, a leaning to a place cannot be told from a leaning to a candidate.",
    )
    limit = forms.IntegerField(
        min_value=1,
        required=False,
        label="Comparisons, at most",
        help_text="Takes those that people meet first, drawn at random once. Of a judge that scores responses one by "
        "one: the first responses. Empty: all.",
    )
    budget = BudgetField(
        help_text="Never exceeded, requests in flight counted at their worst; of a panel, each judge’s own. Needs a "
        "known price, and the judge’s limit of tokens or the model’s longest reply. Empty: no budget."
    )
    slice = forms.ChoiceField(
        required=False, help_text="Only comparisons that it means now. Judges that score responses take none."
    )
    channel = forms.ChoiceField(
        choices=CHANNEL_CHOICES, initial=RunChannel.LIVE, required=False, label="Requests are sent"
    )
    samples = forms.IntegerField(
        min_value=1,
        max_value=100,
        initial=1,
        help_text="How often each is asked. More than one needs a temperature above 0, or a seed.",
    )
    ask_failures_again = forms.BooleanField(
        required=False,
        label="Ask again what came back unusable",
        help_text="Unreadable, refused, truncated or too long. What got no answer is asked again in any case.",
    )

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        evaluation: Evaluation,
        initial: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(data, initial=dict(initial or {}))
        saved_filters = SavedFilter.objects.filter(evaluation=evaluation).order_by("name")
        self.saved_filters = {saved_filter.name: saved_filter for saved_filter in saved_filters}
        names = [("", "all comparisons"), *((name, name) for name in self.saved_filters)]
        self.fields["slice"].choices = names  # type: ignore[attr-defined]
        judges = list_runnable_judges(evaluation)
        self.fields["judge"].queryset = judges  # type: ignore[attr-defined]
        if not judges.filter(kind=JudgeKind.LLM).exists():
            del self.fields["channel"]

    def options(self) -> RunOptions:
        """The options of the run, without its judges."""
        chosen = self.cleaned_data
        return RunOptions(
            orders=chosen["orders"],
            samples=chosen["samples"],
            limit=chosen["limit"],
            ask_failures_again=chosen["ask_failures_again"],
            sliced=self.saved_filters[chosen["slice"]].named if chosen["slice"] else None,
            budget=chosen["budget"],
            channel=chosen.get("channel") or RunChannel.LIVE,
        )


class RetryForm(forms.Form):
    states = forms.MultipleChoiceField(
        choices=[(state, state.replace("_", " ")) for state in RETRYABLE_STATES],
        error_messages={"required": "Choose which calls to retry."},
    )
    budget = BudgetField(help_text="Never exceeded. Empty: no budget.")
