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
    (RunOrders.BOTH, "Both orders"),
    (RunOrders.RANDOM, "One order, chosen at random"),
    (RunOrders.AS_STORED, "A first"),
    (RunOrders.SWAPPED, "B first"),
]

CHANNEL_CHOICES = [
    (RunChannel.LIVE, "Live"),
    (RunChannel.BATCH, "Batch API: about half the price, within a day"),
]


class RunForm(forms.Form):
    judge = RowsField(
        Judge.objects.none(),
        label="Judges",
        error_messages={
            "required": "Choose at least one judge.",
            "invalid_choice": "Choose other judges.",
        },
    )
    orders = forms.ChoiceField(
        choices=ORDER_CHOICES,
        initial=RunOrders.BOTH,
        label="Response order",
        help_text="Both orders ask twice and measure position bias. With A or B always first, position bias can't be "
        "separated from model quality.",
    )
    limit = forms.IntegerField(
        min_value=1,
        required=False,
        label="Limit",
        help_text="Random subset, in review order. Default: all.",
    )
    budget = BudgetField(
        help_text="Hard cap per judge. Needs a known price, and a token limit or the model's max output tokens. "
        "Default: none."
    )
    saved_filter = forms.ChoiceField(required=False, label="Saved filter", help_text="Only for pairwise judges.")
    channel = forms.ChoiceField(choices=CHANNEL_CHOICES, initial=RunChannel.LIVE, required=False, label="Mode")
    samples = forms.IntegerField(
        min_value=1,
        max_value=100,
        initial=1,
        help_text="Per comparison and order. More than one needs a temperature above 0 or a seed.",
    )
    ask_failures_again = forms.BooleanField(
        required=False,
        label="Retry failed calls",
        help_text="Unparsable, refused, truncated or too long.",
    )

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        evaluation: Evaluation,
        initial: Mapping[str, object] | None = None,
        is_new_judge: bool = False,
        is_llm: bool = False,
    ) -> None:
        """``is_new_judge``: of a judge that is created with the run; ``is_llm``: which asks a model."""
        super().__init__(data, initial=dict(initial or {}))
        saved_filters = SavedFilter.objects.filter(evaluation=evaluation).order_by("name")
        self.saved_filters = {saved_filter.name: saved_filter for saved_filter in saved_filters}
        names = [("", "All comparisons"), *((name, name) for name in self.saved_filters)]
        self.fields["saved_filter"].choices = names  # type: ignore[attr-defined]
        judges = list_runnable_judges(evaluation)
        self.fields["judge"].queryset = judges  # type: ignore[attr-defined]
        if not (is_llm if is_new_judge else judges.filter(kind=JudgeKind.LLM).exists()):
            del self.fields["channel"]
        if is_new_judge:
            del self.fields["judge"]

    def options(self) -> RunOptions:
        """The options of the run, without its judges."""
        chosen = self.cleaned_data
        return RunOptions(
            orders=chosen["orders"],
            samples=chosen["samples"],
            limit=chosen["limit"],
            ask_failures_again=chosen["ask_failures_again"],
            saved_filter=self.saved_filters[chosen["saved_filter"]].named if chosen["saved_filter"] else None,
            budget=chosen["budget"],
            channel=chosen.get("channel") or RunChannel.LIVE,
        )


class RetryForm(forms.Form):
    states = forms.MultipleChoiceField(
        choices=[(state, state.replace("_", " ")) for state in RETRYABLE_STATES],
        error_messages={"required": "Choose which calls to retry."},
    )
    budget = BudgetField(help_text="Hard cap. Default: none.")
