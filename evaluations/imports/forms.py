"""The forms that choose how a file is read and how responses are paired."""

from typing import Any

from django import forms
from django.http import QueryDict

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import FileFormat, NewResponse
from evaluations.domain.imports import CandidateNaming, build_import_request
from evaluations.domain.pairing import MAX_PAIRS_PER_QUERY, PairingWay
from evaluations.domain.roles import RaterKind
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.web.forms import CleanedData, add_refusal

FORMAT_CHOICES = [
    (FileFormat.AUTO, "Auto-detect"),
    (FileFormat.COMPARISONS, "Comparisons: a prompt and two responses per row"),
    (FileFormat.RESPONSES, "Responses: a prompt and one response per row"),
    (FileFormat.VERDICTS, "Verdicts: choices between existing responses"),
    (FileFormat.SCORES, "Scores: ratings of existing responses"),
    (FileFormat.PANDALM, "PandaLM: test set or judge results"),
    (FileFormat.LLMBAR, "LLMBar: dataset or judge results"),
    (FileFormat.SQUALITY, "SQuALITY: questions or human evaluation"),
    (FileFormat.MT_BENCH, "MT-Bench: questions, answers, judgments or scores"),
    (FileFormat.ARENA, "Chatbot Arena: conversations with votes"),
    (FileFormat.ALPACA_EVAL, "AlpacaEval: model outputs or annotations"),
    (FileFormat.PREFERENCES, "Preferences: chosen and rejected (TRL, RewardBench)"),
    (FileFormat.KTO, "KTO: responses labeled good or bad (TRL)"),
    (FileFormat.ARENA_HARD, "Arena-Hard: questions, answers or judgments"),
    (FileFormat.JUDGEBENCH, "JudgeBench: pairs with labels and judge decisions"),
    (FileFormat.AUTO_ARENA, "AutoArena: responses or head-to-heads"),
    (FileFormat.LLM_COMPARATOR, "LLM Comparator: JSON"),
    (FileFormat.JUST_EVAL, "just-eval: responses, choices or scores"),
    (FileFormat.LABEL_STUDIO, "Label Studio: pairwise project (JSON, JSON-MIN)"),
    (FileFormat.ARGILLA, "Argilla: pairwise records"),
]
NEW_RESPONSE_CHOICES = [
    (NewResponse.REFUSE, "Ask me"),
    (NewResponse.KEEP, "Keep both"),
    (NewResponse.REPLACE, "Replace the existing response (only if nothing was judged, reviewed or exported with it)"),
    (NewResponse.SKIP, "Skip the new response"),
]
PAIRING_CHOICES = [
    (PairingWay.ALL, "All pairs"),
    (PairingWay.BASELINE, "Each model vs. a baseline"),
    (PairingWay.RANDOM, "Random pairs per prompt"),
    (PairingWay.ADJACENT, "Models with similar ratings"),
]
RATER_KIND_CHOICES = [
    ("", "From the file"),
    (RaterKind.HUMAN, "Human"),
    (RaterKind.JUDGE, "Judge"),
    (RaterKind.GOLD, "Gold"),
]


class ImportOptionsForm(forms.Form):
    """How a waiting file is read, and how its responses are paired."""

    candidate = forms.CharField(required=False, max_length=200, label="Model name")
    format = forms.ChoiceField(choices=FORMAT_CHOICES, label="Format")
    new_response = forms.ChoiceField(
        choices=NEW_RESPONSE_CHOICES, required=False, label="If a model already has a different response to a prompt"
    )
    pair = forms.ChoiceField(choices=PAIRING_CHOICES, required=False, label="Pairing")
    baseline = forms.CharField(required=False, max_length=200, label="Baseline model")
    pairs_each = forms.IntegerField(
        required=False, min_value=1, max_value=MAX_PAIRS_PER_QUERY, label="Random pairs per prompt"
    )
    rater = forms.CharField(
        required=False, max_length=200, label="Default rater", help_text="For verdicts or scores without a rater."
    )
    rater_kind = forms.ChoiceField(required=False, choices=RATER_KIND_CHOICES, label="Default rater type")
    lower_is_better = forms.BooleanField(required=False, label="Lower scores are better")
    derive_pairs = forms.FloatField(
        required=False,
        min_value=0,
        label="Tie margin",
        help_text="Compare responses by score. Scores this close count as a tie.",
    )
    id_prefix = forms.CharField(
        required=False,
        max_length=100,
        label="Prompt ID prefix",
        help_text="Keeps IDs apart when several files number their rows from 0.",
    )

    def __init__(self, importing: Import, data: QueryDict | None = None) -> None:
        options = importing.options.request
        reading, pairing = options.reading, options.pairing
        self.importing = importing
        initial = {
            "candidate": get_model_name(importing),
            "format": reading.format,
            "new_response": reading.new_response,
            "pair": pairing.way,
            "baseline": pairing.baseline,
            "pairs_each": pairing.number or None,
            "rater": reading.rater,
            "rater_kind": reading.rater_kind or "",
            "lower_is_better": reading.lower_is_better,
            "derive_pairs": options.tie_margin,
            "id_prefix": reading.id_prefix,
        }
        super().__init__(data, prefix=str(importing.pk), initial=initial)

    def clean(self) -> CleanedData:
        cleaned: CleanedData = super().clean() or {}
        if not self.errors:
            values = {**cleaned, "mapping": ""}
            if "candidate" not in self.changed_data:  # a proposed name is not a typed one
                values["candidate"] = self.importing.options.request.reading.candidate
            try:
                self.import_request = build_import_request(**values)
            except InputRefused as refused:
                add_refusal(self, refused)
        return cleaned

    @property
    def is_asked_for_model(self) -> bool:
        """Whether all responses have one model name, which the card then shows."""
        summary = self.importing.summary
        return summary.needs_pairing and summary.named_by != CandidateNaming.COLUMN


def get_model_name(importing: Import) -> str:
    """The name of all responses of a file: as typed, else from the file's name; empty if rows have theirs."""
    summary = importing.summary
    if typed := importing.options.request.reading.candidate:
        return typed
    is_proposed = summary.named_by == CandidateNaming.FILE and summary.models_number == 1
    return summary.models[0].name if is_proposed else ""


class PairsForm(forms.Form):
    pair = forms.ChoiceField(choices=PAIRING_CHOICES, initial=PairingWay.ALL, label="Pairing", widget=forms.RadioSelect)
    baseline = forms.ChoiceField(required=False, label="Baseline model")
    pairs_each = forms.IntegerField(
        required=False, min_value=1, max_value=MAX_PAIRS_PER_QUERY, initial=1, label="Random pairs per prompt"
    )
    confirmed = forms.BooleanField(required=False, label="Create more than 100,000 comparisons")

    def __init__(self, evaluation: Evaluation, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = evaluation.candidates.order_by("name").values_list("name", flat=True)
        self.fields["baseline"].choices = [(name, name) for name in names]  # type: ignore[attr-defined]
