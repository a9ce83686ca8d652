from typing import Any

from django import forms
from django.db.models import QuerySet

from evaluations.domain import AskingMode, RubricKind
from evaluations.models import Endpoint, Evaluation, RubricVersion

MODES = [
    (AskingMode.AUTO, "auto – structured output, plain JSON where the server does not take it"),
    (AskingMode.JSON_SCHEMA, "structured output, and nothing else"),
    (AskingMode.TEXT, "plain text"),
]


class VersionChoice(forms.ModelChoiceField):  # type: ignore[type-arg]  # not subscriptable at run time
    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.rubric.name}, version {obj.number}"


class JudgeForm(forms.Form):
    endpoint = forms.ModelChoiceField(
        Endpoint.objects.order_by("name"),
        required=False,
        empty_label="None: a rule, not an LLM",
        help_text="Where the model is asked. Site administrators add endpoints.",
    )
    model = forms.CharField(
        max_length=200,
        required=False,
        help_text="As the endpoint calls it, such as “llama3.1:8b”. "
        "Without an endpoint a rule: longest (also when left empty), first or random.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    name = forms.CharField(
        max_length=120, required=False, help_text="What pages and reports call this judge. Empty: the model’s name."
    )
    version = VersionChoice(
        RubricVersion.objects.none(),
        label="Rubric",
        help_text="It is frozen with the judge; a later edit changes nothing.",
    )
    temperature = forms.FloatField(
        min_value=0, max_value=2, required=False, help_text="Empty: whatever the server does by itself."
    )
    max_tokens = forms.IntegerField(
        min_value=1,
        max_value=1_000_000,
        required=False,
        label="Tokens of a reply, at most",
        help_text="Empty: no limit.",
    )
    seed = forms.IntegerField(required=False, help_text="For servers that know seeds, and for the rule random.")
    mode = forms.ChoiceField(choices=MODES, initial=AskingMode.AUTO, label="Answers")

    def __init__(self, *args: Any, evaluation: Evaluation, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        versions = self.fields["version"]
        assert isinstance(versions, VersionChoice)
        versions.queryset = askable_versions(evaluation)
        versions.initial = evaluation.review_rubric


def askable_versions(evaluation: Evaluation) -> "QuerySet[RubricVersion]":
    """The pairwise versions. One that came with an import serves the baseline, which reads no instructions."""
    versions = RubricVersion.objects.filter(rubric__evaluation=evaluation, rubric__kind=RubricKind.PAIRWISE)
    return versions.select_related("rubric").order_by("rubric__name", "-number")
