"""The form that uploads a file."""

from typing import Any, BinaryIO, TypedDict, cast

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile

from evaluations.comparisons.pairing.selectors import PAIR_ADJACENT, PAIR_ALL, PAIR_BASELINE, PAIR_RANDOM
from evaluations.domain.files import DEFAULT_FILE_NAME, FileFormat, NewResponse, ReadOptions
from evaluations.domain.roles import RaterKind
from evaluations.web.forms import CleanedData

FORMAT_CHOICES = [
    (FileFormat.AUTO, "found out from the columns"),
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
    (PAIR_ALL, "every two candidates of a query"),
    (PAIR_BASELINE, "each candidate against one of them"),
    (PAIR_RANDOM, "some pairs of each query, drawn at random"),
    (PAIR_ADJACENT, "each candidate against its neighbours by rating"),
]


class UploadOptions(TypedDict):
    """The arguments of `receive_upload`."""

    file: BinaryIO
    size: int
    file_name: str
    reading: ReadOptions
    pair: str
    derive_pairs: float | None


class ImportForm(forms.Form):
    # An empty file is refused where all files are, in the same words for every door.
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
    pair = forms.ChoiceField(choices=PAIRING_CHOICES, initial=PAIR_ALL, required=False, label="Pairs made of responses")
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
    pairs_each = forms.IntegerField(required=False, min_value=1, max_value=999_999, label="Pairs of each query")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["file"].widget.attrs["data-most"] = settings.MAX_UPLOAD_BYTES

    def clean_file(self) -> "UploadedFile[bytes]":
        file: UploadedFile[bytes] = self.cleaned_data["file"]
        if (file.size or 0) > settings.MAX_UPLOAD_BYTES:
            raise forms.ValidationError(describe_too_large())
        return file

    def clean_mapping(self) -> dict[str, str]:
        mapping = {}
        for line in self.cleaned_data["mapping"].split("\n"):
            column, equals, field = (part.strip() for part in line.partition("="))
            if column and equals and field:
                mapping[column] = field
            elif line.strip():
                raise forms.ValidationError(f"“{line.strip()}” is not of the form column=field.")
        return mapping

    def clean(self) -> CleanedData:
        cleaned: dict[str, Any] = super().clean() or {}
        if cleaned.get("pair") == PAIR_BASELINE and not cleaned.get("baseline"):
            self.add_error("baseline", "Name the candidate.")
        if cleaned.get("pair") == PAIR_RANDOM and not cleaned.get("pairs_each"):
            self.add_error("pairs_each", "Say how many.")
        return cleaned

    def options(self) -> UploadOptions:
        upload: UploadedFile[bytes] = self.cleaned_data["file"]
        return {
            "file": cast(BinaryIO, upload),
            "size": upload.size or 0,
            "file_name": upload.name or DEFAULT_FILE_NAME,
            "reading": self.reading(),
            "pair": self.pairing(),
            "derive_pairs": self.cleaned_data["derive_pairs"],
        }

    def reading(self) -> ReadOptions:
        kind = self.cleaned_data["rater_kind"]
        return ReadOptions(
            format=self.cleaned_data["format"],
            id_prefix=self.cleaned_data["id_prefix"],
            mapping=self.cleaned_data["mapping"],
            rater=self.cleaned_data["rater"],
            rater_kind=RaterKind(kind) if kind else None,
            lower_is_better=self.cleaned_data["lower_is_better"],
            candidate=self.cleaned_data["candidate"],
            new_response=NewResponse(self.cleaned_data["new_response"] or NewResponse.REFUSE),
        )

    def pairing(self) -> str:
        way = self.cleaned_data["pair"] or PAIR_ALL
        rest = {PAIR_BASELINE: self.cleaned_data["baseline"], PAIR_RANDOM: self.cleaned_data["pairs_each"]}
        return f"{way}:{rest[way]}" if way in rest else way


def describe_too_large() -> str:
    return (
        f"The file is larger than {settings.MAX_UPLOAD_BYTES // 1024 // 1024:,} MB, the most that this server takes. "
        "Split it, or import it on the server itself with  manage.py import_comparisons"
    )
