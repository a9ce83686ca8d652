"""The forms that upload a file and choose a way of pairing."""

from typing import Any

from django import forms
from django.conf import settings

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import FileFormat, NewResponse
from evaluations.domain.imports import build_import_request
from evaluations.domain.pairing import MAX_PAIRS_PER_QUERY, PairingWay
from evaluations.domain.roles import RaterKind
from evaluations.models.evaluations import Evaluation
from evaluations.web.forms import CleanedData, add_refusal

FORMAT_CHOICES = [
    (FileFormat.AUTO, "detected from the columns"),
    (FileFormat.COMPARISONS, "comparisons – a query and two responses in each row"),
    (FileFormat.RESPONSES, "responses – a query and one response in each row; pairs are made afterwards"),
    (FileFormat.VERDICTS, "verdicts – choices of people or judges on comparisons that are here already"),
    (FileFormat.SCORES, "scores – numbers that people or judges gave to single responses that are here already"),
    (FileFormat.PANDALM, "PandaLM – its test set, or a judge’s results on it"),
    (FileFormat.LLMBAR, "LLMBar – its dataset, or a judge’s result.json"),
    (FileFormat.SQUALITY, "SQuALITY – its questions, or its human evaluation: responses, ratings and ranks"),
    (FileFormat.MT_BENCH, "MT-bench – questions, a model’s answers, a judge’s judgments or scores"),
    (FileFormat.ARENA, "Chatbot Arena, MT-bench’s votes – two conversations or responses, and who won"),
    (FileFormat.ALPACA_EVAL, "AlpacaEval – outputs of a model, or annotations"),
    (FileFormat.PREFERENCES, "preferences – chosen and rejected, as of TRL and RewardBench"),
    (FileFormat.KTO, "KTO – single responses that are good or bad, as of TRL"),
    (FileFormat.ARENA_HARD, "Arena-Hard – questions, a model’s answers, or a judge’s judgments"),
    (FileFormat.JUDGEBENCH, "JudgeBench – pairs with a known better response, and a judge’s decisions"),
    (FileFormat.AUTO_ARENA, "AutoArena – prompts and responses of one model, or head-to-heads"),
    (FileFormat.LLM_COMPARATOR, "LLM Comparator – its JSON document"),
    (FileFormat.JUST_EVAL, "just-eval – responses, choices or scores of a judge"),
    (FileFormat.LABEL_STUDIO, "Label Studio – JSON or JSON-MIN of a project that compares two texts"),
    (FileFormat.ARGILLA, "Argilla – records of a project that compares two texts"),
]
NEW_RESPONSE_CHOICES = [
    (NewResponse.REFUSE, "refuse the row – it is listed with both texts"),
    (NewResponse.KEEP, "keep both – comparisons are made with each"),
    (NewResponse.REPLACE, "replace the other – only while nothing was judged, reviewed or exported with it"),
    (NewResponse.SKIP, "skip the row – it is left out and counted"),
]
PAIRING_CHOICES = [
    (PairingWay.ALL, "every two candidates of a query"),
    (PairingWay.BASELINE, "each candidate against one of them"),
    (PairingWay.RANDOM, "some pairs of each query, drawn at random"),
    (PairingWay.ADJACENT, "each candidate against its neighbours by rating"),
]


class ImportForm(forms.Form):
    # An empty file is refused by the service, with the same message as in the API.
    file = forms.FileField(
        allow_empty_file=True,
        help_text="JSONL, JSON, CSV, TSV, Parquet or Arrow; as it is, with gzip or zstd, or in a ZIP or tar.",
    )
    format = forms.ChoiceField(choices=FORMAT_CHOICES, initial=FileFormat.AUTO, label="What is in it")
    id_prefix = forms.CharField(
        required=False,
        max_length=100,
        label="Prefix of query ids",
        help_text="Goes before every query id, for files that number their rows from 0 each.",
    )
    candidate = forms.CharField(
        required=False,
        max_length=200,
        label="Model",
        help_text="The model of every response in the file, whatever its column says. Without it the column names "
        "the model, else the file’s name does.",
    )
    rater = forms.CharField(
        required=False,
        max_length=200,
        label="Rater",
        help_text="Whose verdicts or scores these are, where the file names nobody.",
    )
    rater_kind = forms.ChoiceField(
        required=False, choices=[("", "as the file says"), *((kind, str(kind)) for kind in RaterKind)]
    )
    mapping = forms.CharField(
        required=False,
        label="Columns with other names",
        help_text="One a line, as column=field: prompt=query",
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "mono"}),
    )
    pair = forms.ChoiceField(
        choices=PAIRING_CHOICES, initial=PairingWay.ALL, required=False, label="Pairs made of responses"
    )
    baseline = forms.CharField(required=False, max_length=200, label="The candidate to hold the others against")
    new_response = forms.ChoiceField(
        choices=NEW_RESPONSE_CHOICES,
        initial=NewResponse.REFUSE,
        required=False,
        label="If a model already has another response to a prompt",
        help_text="A column “sample” with numbers tells several responses of one model apart.",
        widget=forms.RadioSelect,
    )
    lower_is_better = forms.BooleanField(required=False, label="Lower scores are better, as ranks are")
    derive_pairs = forms.FloatField(
        required=False,
        min_value=0,
        label="Margin of a tie",
        help_text="Given one, a comparison is made of every two responses to a query with scores, where there is none, "
        "and two scores that differ by at most this much make a tie.",
    )
    pairs_each = forms.IntegerField(
        required=False, min_value=1, max_value=MAX_PAIRS_PER_QUERY, label="Pairs of each query"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["file"].widget.attrs["data-max-bytes"] = settings.MAX_UPLOAD_BYTES

    def clean(self) -> CleanedData:
        cleaned: CleanedData = super().clean() or {}
        if not self.errors:
            try:
                fields = {name: value for name, value in cleaned.items() if name != "file"}
                self.import_request = build_import_request(**fields)
            except InputRefused as refused:
                add_refusal(self, refused)
        return cleaned


class PairsForm(forms.Form):
    pair = forms.ChoiceField(
        choices=PAIRING_CHOICES, initial=PairingWay.ALL, label="Hold against each other", widget=forms.RadioSelect
    )
    baseline = forms.ChoiceField(required=False, label="The candidate to hold the others against")
    pairs_each = forms.IntegerField(
        required=False, min_value=1, max_value=MAX_PAIRS_PER_QUERY, initial=1, label="Pairs of each query"
    )
    confirmed = forms.BooleanField(required=False, label="Make them even if they are more than 100,000")

    def __init__(self, evaluation: Evaluation, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = evaluation.candidates.order_by("name").values_list("name", flat=True)
        self.fields["baseline"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]
