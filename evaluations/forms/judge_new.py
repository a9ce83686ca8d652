from collections.abc import Iterator, Mapping
from typing import Any, Final

from django import forms
from django.db.models import QuerySet
from django.forms.models import ModelChoiceIterator

from evaluations.domain import RULES_IN_WORDS, AskingMode, RubricKind, may_be_key
from evaluations.forms.extras import LinesField, ObjectField
from evaluations.forms.secrets import SecretFreeForm, SecretFreeInput
from evaluations.models import Endpoint, Evaluation, RubricVersion
from evaluations.services.judging.judging import REASONING_EFFORTS

PLAIN: Final = {"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}
MODES: Final = [
    (AskingMode.AUTO, "Auto – before its first verdict it is found out which of these the server takes"),
    (AskingMode.JSON_SCHEMA, "JSON by a schema – the server holds each reply to it; stops where it cannot"),
    (AskingMode.JSON_OBJECT, "JSON – the server sees to it that it is JSON, the prompt to what stands in it"),
    (AskingMode.TEXT, "Plain text – the prompt alone says what is wanted; any server takes it"),
    (AskingMode.TWO_STEP, "Two steps – free text first, then the verdict alone; each judgment takes two requests"),
]
EFFORTS: Final = [
    ("", "whatever the model does by itself"),
    *((one, one) for one in REASONING_EFFORTS),
]
RULES: Final = [(name, f"{name} – {words}") for name, words in RULES_IN_WORDS.items()]
KINDS: Final = [
    (RubricKind.PAIRWISE, "Pairwise: two responses, side by side"),
    (RubricKind.POINTWISE, "Pointwise: one response, on a scale"),
]
# What only a model has.
MODEL_SETTINGS: Final = (
    *("mode", "temperature", "max_tokens", "reasoning_effort", "logprobs", "repairs"),
    *("extra_headers", "extra_body", "one_aspect_per_call"),
)


class KindsApart(ModelChoiceIterator):  # type: ignore[type-arg]  # not subscriptable at run time
    """The versions in two groups, by what a judge is asked to look at."""

    def __iter__(self) -> Iterator[Any]:
        versions = list(self.queryset)
        for kind, title in KINDS:
            if group := [self.choice(one) for one in versions if one.rubric.kind == kind]:
                yield title, group


class VersionChoice(forms.ModelChoiceField):  # type: ignore[type-arg]  # not subscriptable at run time
    iterator = KindsApart

    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.rubric.name}, version {obj.number}"


class JudgeForm(SecretFreeForm):
    endpoint = forms.ModelChoiceField(
        Endpoint.objects.order_by("name"),
        required=False,
        empty_label="None: a rule, not an LLM",
        help_text="Where the model is asked. Site administrators add endpoints.",
    )
    rule = forms.ChoiceField(
        choices=RULES,
        required=False,
        help_text="A baseline with a bias that is known: to hold judges, and the report itself, against.",
    )
    model = forms.CharField(
        max_length=200,
        required=False,
        help_text="As the endpoint calls it, such as “llama3.1:8b”.",
        widget=SecretFreeInput(lambda text: not may_be_key(text), attrs={**PLAIN, "list": "models"}),
    )
    name = forms.CharField(
        max_length=120,
        required=False,
        help_text="What pages and reports call this judge. Empty: the model’s or rule’s name.",
        widget=SecretFreeInput(lambda text: not may_be_key(text)),
    )
    version = VersionChoice(
        RubricVersion.objects.none(),
        label="Rubric",
        help_text="It is frozen with the judge; a later edit changes nothing.",
    )
    mode = forms.ChoiceField(
        choices=MODES, initial=AskingMode.AUTO, label="How it is asked for its answer", widget=forms.RadioSelect
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
        choices=EFFORTS, required=False, help_text="For models that reason before they answer."
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
    extra_headers = LinesField(
        label="Extra headers",
        help_text="One per line, as in “X-Title: judgeweb”. They override the endpoint's.",
    )
    extra_body = ObjectField(
        label="Extra body fields", help_text='A JSON object, as in {"top_p": 0.9}. They override the endpoint\'s.'
    )

    def __init__(self, *args: Any, evaluation: Evaluation, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        versions = self.fields["version"]
        assert isinstance(versions, VersionChoice)
        versions.queryset = askable_versions(evaluation)
        versions.initial = evaluation.review_rubric

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if given.get("endpoint") and not given.get("model"):
            self.add_error("model", "Name the model that is asked at this endpoint.")
        return given

    def settings(self) -> Mapping[str, Any]:
        """What makes the judge. A rule has none of a model's settings; it is named where no model is."""
        given = dict(self.cleaned_data)
        rule = given.pop("rule") or RULES[0][0]
        if given["endpoint"] is None:
            given = {name: value for name, value in given.items() if name not in MODEL_SETTINGS}
            given["model"] = given["model"] or rule
        given["name"] = given["name"] or given["model"]
        return given


def askable_versions(evaluation: Evaluation) -> "QuerySet[RubricVersion]":
    """Every version. One that came with an import serves a rule, which reads no instructions."""
    versions = RubricVersion.objects.filter(rubric__evaluation=evaluation)
    return versions.select_related("rubric").order_by("rubric__name", "-number")
