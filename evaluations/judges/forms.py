"""The form that creates a judge."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from django import forms
from django.db.models import QuerySet
from django.forms.models import ModelChoiceIterator

from evaluations.domain.judges import RULE_JUDGE_TEXTS, OutputMode
from evaluations.domain.rubrics import RubricKind
from evaluations.domain.secrets import is_probable_key
from evaluations.judges.selectors import list_judgeable_versions
from evaluations.judges.services import REASONING_EFFORTS, JudgeSettings, complete_settings, name_judge
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint
from evaluations.models.rubrics import RubricVersion
from evaluations.web.forms import HeaderLinesField, JSONObjectField, SecretFreeForm, SecretFreeInput

PLAIN_ATTRS: Final = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
MODE_CHOICES: Final = [
    (OutputMode.AUTO, "Auto – the strictest that the model supports"),
    (OutputMode.JSON_SCHEMA, "JSON schema (strict)"),
    (OutputMode.JSON_OBJECT, "JSON object – the prompt gives the schema"),
    (OutputMode.TEXT, "Plain text – the prompt gives the format"),
    (OutputMode.TWO_STEP, "Two steps – free text, then the verdict; two requests per call"),
]
EFFORT_CHOICES: Final = [
    ("", "Model default"),
    *((effort, effort) for effort in REASONING_EFFORTS),
]
RULE_CHOICES: Final = [(name, f"{name} – {words}") for name, words in RULE_JUDGE_TEXTS.items()]
KIND_CHOICES: Final = [
    (RubricKind.PAIRWISE, "Pairwise: two responses, side by side"),
    (RubricKind.POINTWISE, "Pointwise: one response, on a scale"),
]


class GroupedVersionIterator(ModelChoiceIterator):  # type: ignore[type-arg]  # not subscriptable at run time
    """The versions in two groups, pairwise and pointwise."""

    def __iter__(self) -> Iterator[Any]:
        versions = list(self.queryset)
        for kind, title in KIND_CHOICES:
            if group := [self.choice(version) for version in versions if version.rubric.kind == kind]:
                yield title, group


class VersionChoiceField(forms.ModelChoiceField):  # type: ignore[type-arg]  # not subscriptable at run time
    iterator = GroupedVersionIterator

    def label_from_instance(self, obj: RubricVersion) -> str:
        return f"{obj.rubric.name}, version {obj.number}"


class JudgeForm(SecretFreeForm):
    endpoint = forms.ModelChoiceField(
        Endpoint.objects.none(),
        required=False,
        empty_label="No LLM (rule-based baseline)",
        label="LLM endpoint",
    )
    rule = forms.ChoiceField(
        choices=RULE_CHOICES,
        required=False,
        help_text="Known-bias baseline for sanity checks.",
    )
    model = forms.CharField(
        max_length=200,
        required=False,
        label="Model ID",
        widget=SecretFreeInput(lambda text: not is_probable_key(text), attrs={**PLAIN_ATTRS, "list": "models"}),
    )
    name = forms.CharField(
        max_length=120,
        required=False,
        help_text="Default: the model, plus the rubric if that name exists.",
        widget=SecretFreeInput(lambda text: not is_probable_key(text)),
    )
    version = VersionChoiceField(
        RubricVersion.objects.none(),
        label="Rubric",
    )
    mode = forms.ChoiceField(
        choices=MODE_CHOICES, initial=OutputMode.AUTO, label="Output format", widget=forms.RadioSelect
    )
    temperature = forms.FloatField(min_value=0, max_value=2, required=False, help_text="Default: the server's.")
    seed = forms.IntegerField(
        required=False, help_text="For servers that support it, and the random rule. Each sample uses the next one."
    )
    max_tokens = forms.IntegerField(
        min_value=1,
        max_value=1_000_000,
        required=False,
        label="Max tokens",
        help_text="Default: the model's maximum.",
    )
    reasoning_effort = forms.ChoiceField(choices=EFFORT_CHOICES, required=False, help_text="For reasoning models.")
    repairs = forms.BooleanField(
        label="Retry once on unparsable output",
        required=False,
        initial=True,
        help_text="With the error in the prompt. Such verdicts are marked.",
    )
    one_aspect_per_call = forms.BooleanField(
        label="One request per aspect",
        required=False,
        help_text="Aspects can't influence each other; costs more.",
    )
    logprobs = forms.BooleanField(
        label="Log probabilities",
        required=False,
        help_text="Stored with the choices if the server returns them.",
    )
    extra_headers = HeaderLinesField(
        label="Extra headers",
        help_text="One per line, such as “X-Title: judgeweb”. They override the endpoint's.",
    )
    extra_body = JSONObjectField(
        label="Extra body fields", help_text='A JSON object, such as {"top_p": 0.9}. They override the endpoint\'s.'
    )

    def __init__(
        self,
        data: Mapping[str, object] | None = None,
        *,
        evaluation: Evaluation,
        endpoints: QuerySet[Endpoint],
        initial: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(data, initial=initial)
        self.evaluation = evaluation
        self.fields["endpoint"].queryset = endpoints  # type: ignore[attr-defined]
        versions = self.fields["version"]
        assert isinstance(versions, VersionChoiceField)
        versions.queryset = list_judgeable_versions(evaluation)
        versions.initial = evaluation.review_rubric

    def settings(self) -> JudgeSettings:
        """The settings, with a generated name if none was entered."""
        values = {name: value for name, value in self.cleaned_data.items() if name != "rule"}
        settings = complete_settings(JudgeSettings(**values), self.cleaned_data["rule"])
        return settings if values["name"].strip() else name_judge(self.evaluation, settings)
