from typing import Any

from django import forms
from django.db.models import QuerySet

from evaluations.domain import JudgeKind, Orders
from evaluations.models import Evaluation, Judge

ORDERS = [
    (Orders.BOTH, "both orders"),
    (Orders.RANDOM, "one order, drawn at random"),
    (Orders.AS_STORED, "A first"),
    (Orders.SWAPPED, "B first"),
]


class JudgeChoice(forms.ModelChoiceField):  # type: ignore[type-arg]  # not subscriptable at run time
    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.name} – baseline, not an LLM" if obj.is_baseline else f"{obj.name} ({obj.model})"


class RunForm(forms.Form):
    judge = JudgeChoice(Judge.objects.none(), empty_label=None)
    orders = forms.ChoiceField(
        choices=ORDERS,
        initial=Orders.BOTH,
        label="Order of the two responses",
        help_text="Both orders ask each comparison twice and show whether the judge leans to one place. With A or B "
        "always first, a leaning to a place cannot be told from a leaning to a candidate.",
    )
    limit = forms.IntegerField(
        min_value=1,
        required=False,
        label="Comparisons, at most",
        help_text="Takes those that people meet first, drawn at random once. Empty: all.",
    )
    samples = forms.IntegerField(
        min_value=1,
        max_value=100,
        initial=1,
        help_text="How often each is asked. More than one needs a temperature above 0.",
    )
    ask_failures_again = forms.BooleanField(
        required=False,
        label="Ask again what came back unusable",
        help_text="Unreadable, refused, truncated or too long. What got no answer is asked again in any case.",
    )

    def __init__(self, *args: Any, evaluation: Evaluation, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        judges = self.fields["judge"]
        assert isinstance(judges, JudgeChoice)
        judges.queryset = askable_judges(evaluation)
        judges.initial = askable_judges(evaluation).first()


def askable_judges(evaluation: Evaluation) -> "QuerySet[Judge]":
    """Newest first, those that came with an import left out: there is no one to ask."""
    return Judge.objects.filter(evaluation=evaluation).exclude(kind=JudgeKind.IMPORTED).order_by("-pk")
