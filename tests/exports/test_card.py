"""The card of a data set says what was asked, who answered, and how far they agree."""

import io
import zipfile

import pytest

from evaluations.domain.choices import Choice
from evaluations.exports.options import ExportRequest
from evaluations.exports.services import start_export
from evaluations.exports.writer import stream_export
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.verdicts.votes import update_labels
from tests.factories.evaluations import make_comparison, make_human
from tests.factories.verdicts import make_judge_verdicts, make_review

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

A, B, TIE = Choice.A, Choice.B, Choice.TIE


@pytest.fixture(autouse=True)
def votes_of_reviewers_and_a_judge(evaluation: Evaluation) -> None:
    """Two people and a judge on four comparisons: the people agree on three of them, the judge with both of these."""
    evaluation.name = "A | study"
    evaluation.save()
    ann, ben = make_human(evaluation, "ann"), make_human(evaluation, "ben")
    for number, (one, other, judge) in enumerate([(A, A, A), (B, B, B), (TIE, TIE, TIE), (A, B, A)]):
        comparison = make_comparison(evaluation, key=f"q{number}")
        make_review(ann, comparison, {"clarity": one})
        make_review(ben, comparison, {"clarity": other})
        make_judge_verdicts(
            comparison, judge="gpt", kind="llm", as_stored={"clarity": judge}, swapped={"clarity": judge}
        )
    update_labels(Comparison.objects.values_list("pk", flat=True))


def files(evaluation: Evaluation, **wanted: str) -> dict[str, bytes]:
    export = start_export(evaluation, written_as="hugging-face", user=None, request=ExportRequest(**wanted))  # type: ignore[arg-type]
    written = b"".join(stream_export(export, Comparison.objects.filter(evaluation=evaluation)))
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_card_is_made_of_the_evaluation(evaluation: Evaluation) -> None:
    """Krippendorff's alpha: 1 − (2/8) / (42/56); one of four pairs of votes differs; A 3, B 3, tie 2 of 8.

    People who are split count as a tie: the judge agrees on 3 of 4, by chance on 5/16; (3/4 − 5/16) ÷ 11/16 = 0.64.
    """
    found = files(evaluation, aspect="clarity")
    assert list(found) == [
        "README.md",
        "manifest.json",
        "preferences/train.parquet",
        "comparisons/train.parquet",
    ]
    card = found["README.md"].decode()
    assert "# A \\| study" in card
    assert "Annotated by 2 reviewers and 1 judge." in card
    assert "| gpt | llm | model | six-aspect 1 |" in card
    assert "### Rubric six-aspect 1" in card
    assert "| clarity | reviewers | Krippendorff's alpha | 0.67 |" in card
    told = [line.split(" | ")[2:] for line in card.splitlines() if "gpt and the majority" in line]
    assert [one[:2] + one[3:] for one in told] == [["agreement", "0.75", "4 |"], ["Cohen's kappa", "0.64", "4 |"]]
    # The tie, and the comparison on which the people are split.
    assert "| tie | ties | 1 |" in card
    assert "| split | split votes | 1 |" in card


def test_the_same_study_gives_the_same_folder(evaluation: Evaluation) -> None:
    assert files(evaluation, combine="unanimous:clarity") == files(evaluation, combine="unanimous:clarity")
