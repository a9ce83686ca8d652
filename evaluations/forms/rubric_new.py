from typing import Final

from django import forms

from evaluations.domain import RubricKind
from evaluations.forms.aspects import CODE

REFERENCE_METRIC: Final = "reference-metric"
BUILTINS: Final = [
    (
        "six-aspect",
        "Six aspects, pairwise: helpfulness, factuality, clarity, depth, engagement and safety, each A, tie or B",
    ),
    (
        "qa-pairwise",
        "Question answering, pairwise: to the point, true to its context, complete, fluent; A, SAME or B",
    ),
    (
        "summary-rating",
        "Summaries, pointwise 1 to 5: written out as free text first, then the rating alone in a second request",
    ),
    (
        REFERENCE_METRIC,
        "A metric against a reference answer, pointwise 0 to 1: a score and its reason, under names of yours",
    ),
]


class BuiltinForm(forms.Form):
    builtin = forms.ChoiceField(label="Rubric", choices=BUILTINS, initial=BUILTINS[1][0], widget=forms.RadioSelect)
    name = forms.CharField(
        max_length=120, required=False, help_text="What it is called here. Empty: as it stands above, or as its metric."
    )
    metric = forms.CharField(
        label="Name of the metric",
        max_length=60,
        required=False,
        help_text="For the reference metric, such as “Correctness” or “Faithfulness”.",
    )
    reason_key = forms.CharField(
        label="Name of the reason",
        max_length=60,
        required=False,
        help_text="What its answer calls the explanation. Empty: reason.",
        widget=forms.TextInput(attrs=CODE),
    )


class NameForm(forms.Form):
    """What stands beside the editor of a first version."""

    kind = forms.ChoiceField(choices=[(kind.value, kind.value) for kind in RubricKind], widget=forms.HiddenInput)
    name = forms.CharField(
        label="Name of the rubric", max_length=120, help_text="What pages call it, such as “Support answers”."
    )
