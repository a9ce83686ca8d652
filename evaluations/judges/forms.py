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
from evaluations.judges.services import REASONING_EFFORTS, JudgeSettings, complete_settings
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint
from evaluations.models.rubrics import RubricVersion
from evaluations.web.forms import HeaderLinesField, JSONObjectField, SecretFreeForm, SecretFreeInput

PLAIN_ATTRS: Final = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
MODE_CHOICES: Final = [
    (OutputMode.AUTO, "Auto – before its first verdict it is found out which of these the server takes"),
    (OutputMode.JSON_SCHEMA, "JSON by a schema – the server holds each reply to it; stops where it cannot"),
    (OutputMode.JSON_OBJECT, "JSON – the server sees to it that it is JSON, the prompt to what stands in it"),
    (OutputMode.TEXT, "Plain text – the prompt alone says what is wanted; any server takes it"),
    (OutputMode.TWO_STEP, "Two steps – free text first, then the verdict alone; each judgment takes two requests"),
]
EFFORT_CHOICES: Final = [
    ("", "whatever the model does by itself"),
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
        empty_label="None: a rule, not an LLM",
        help_text="Where the model is asked. Site administrators add endpoints and grant them to evaluations.",
    )
    rule = forms.ChoiceField(
        choices=RULE_CHOICES,
        required=False,
        help_text="A baseline with a bias that is known: to hold judges, and the report itself, against.",
    )
    model = forms.CharField(
        max_length=200,
        required=False,
        help_text="As the endpoint calls it, such as “llama3.1:8b”.",
        widget=SecretFreeInput(lambda text: not is_probable_key(text), attrs={**PLAIN_ATTRS, "list": "models"}),
    )
    name = forms.CharField(
        max_length=120,
        required=False,
        help_text="What pages and reports call this judge. Empty: the model’s or rule’s name.",
        widget=SecretFreeInput(lambda text: not is_probable_key(text)),
    )
    version = VersionChoiceField(
        RubricVersion.objects.none(),
        label="Rubric",
        help_text="It is frozen with the judge; a later edit changes nothing.",
    )
    mode = forms.ChoiceField(
        choices=MODE_CHOICES, initial=OutputMode.AUTO, label="How it is asked for its answer", widget=forms.RadioSelect
    )
    temperature = forms.FloatField(
        min_value=0, max_value=2, required=False, help_text="Empty: whatever the server does by itself."
    )
    seed = forms.IntegerField(
        required=False, help_text="For servers that know seeds, and for the rule random. Each sample has the next."
    )
    max_tokens = forms.IntegerField(
        min_value=1,
        max_value=1_000_000,
        required=False,
        label="Tokens of a reply, at most",
        help_text="Default: the model's own maximum. A budget then needs that maximum in the model's price.",
    )
    reasoning_effort = forms.ChoiceField(
        choices=EFFORT_CHOICES, required=False, help_text="For models that reason before they answer."
    )
    repairs = forms.BooleanField(
        label="Ask once more where a reply cannot be read",
        required=False,
        initial=True,
        help_text="The model is told what was wrong. Such verdicts are marked and counted.",
    )
    one_aspect_per_call = forms.BooleanField(
        label="Ask for each aspect in a request of its own",
        required=False,
        help_text="More requests and cost; aspects cannot influence each other.",
    )
    logprobs = forms.BooleanField(
        label="Ask for the probabilities of its choices",
        required=False,
        help_text="Kept beside the choices, where the server returns them.",
    )
    extra_headers = HeaderLinesField(
        label="Extra headers",
        help_text="One per line, as in “X-Title: judgeweb”. They override the endpoint's.",
    )
    extra_body = JSONObjectField(
        label="Extra body fields", help_text='A JSON object, as in {"top_p": 0.9}. They override the endpoint\'s.'
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
        self.fields["endpoint"].queryset = endpoints  # type: ignore[attr-defined]
        versions = self.fields["version"]
        assert isinstance(versions, VersionChoiceField)
        versions.queryset = list_judgeable_versions(evaluation)
        versions.initial = evaluation.review_rubric

    def settings(self) -> JudgeSettings:
        settings = {name: value for name, value in self.cleaned_data.items() if name != "rule"}
        return complete_settings(JudgeSettings(**settings), self.cleaned_data["rule"])
