"""The manifest of an exported file, from which its data set card is written, too."""

from collections.abc import Iterator, Mapping
from typing import Final

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet

from evaluations.domain.choices import LabelPolicy
from evaluations.domain.preferences import parse_preference_rule
from evaluations.domain.reports import ReportPart, ReportRules
from evaluations.domain.reviews import SAVED_REVIEW_STATES
from evaluations.exports.options import ExportRequest, serialize_filters, serialize_options
from evaluations.exports.participants import Participants, format_rubric_name
from evaluations.formats.dataset_card import CardAgreement, CardFacts, CardRubric
from evaluations.formats.export_format import ExportFormat, ExportTally
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.rubrics import RubricVersion
from evaluations.models.verdicts import Review
from evaluations.reports.selectors import build_report
from evaluations.stats.aspect_report import AspectReport
from evaluations.stats.estimates import Estimate


def iterate_agreement_facts(participants: Participants, comparisons: "QuerySet[Comparison]") -> Iterator[CardAgreement]:
    """The agreement among people, and of each judge with their majority, on each aspect."""
    # The file holds the votes of excluded reviewers, too.
    rules = ReportRules(with_excluded=True)
    report = build_report(participants.evaluation, comparisons, rules, parts=(ReportPart.AGREEMENT,))
    judges = {judge.name for judge in participants.judges.values()}
    for key, aspect in report.aspects.items():
        yield from iterate_aspect_agreement(key, aspect, judges)


def iterate_aspect_agreement(key: str, aspect: AspectReport, judges: set[str]) -> Iterator[CardAgreement]:
    alpha = aspect.human_human.multi.krippendorff_alpha
    if alpha.value is not None:
        yield build_agreement_fact(key, "reviewers", "Krippendorff's alpha", alpha)
    for name, judge in aspect.judges.items():
        against = judge.judge_human.majority.with_ties
        if name in judges and against.agreement.value is not None:
            yield build_agreement_fact(key, f"{name} and the majority of reviewers", "agreement", against.agreement)
            if against.cohen_kappa.value is not None:
                yield build_agreement_fact(
                    key, f"{name} and the majority of reviewers", "Cohen's kappa", against.cohen_kappa
                )


def build_agreement_fact(key: str, between: str, measure: str, number: Estimate) -> CardAgreement:
    interval = f"{number.ci95[0]:.2f} to {number.ci95[1]:.2f}" if number.ci95 else "–"
    return CardAgreement(key, between, measure, f"{number.value:.2f}", interval, number.n)


PRODUCT: Final = "judgeweb"

POLICY_DESCRIPTIONS: Final = {
    LabelPolicy.PEOPLE_THEN_JUDGES: "Reviewers’ votes; without any, the verdict of a panel of judges or one judge.",
    LabelPolicy.PEOPLE: "Reviewers’ votes only.",
}


def build_manifest_basis(
    export_format: ExportFormat, request: ExportRequest, participants: Participants
) -> dict[str, object]:
    """The part of the manifest that is known before the first row, identical for identical files."""
    evaluation = participants.evaluation
    basis: dict[str, object] = {
        **build_manifest_header(export_format, evaluation),
        "label_policy": request.policy,
        "filters": serialize_filters(request),
        "options": serialize_options(request),
        "aspects": list(participants.aspects.values()),
        "rubrics": [describe_rubric_version(version) for version in list_exported_rubrics(participants)],
        "judges": [
            {**participants.introduced[pk], "fingerprint": judge.fingerprint}
            for pk, judge in participants.judges.items()
        ],
        "people": len(participants.list_names().people),
        "gold": list(participants.list_names().gold),
    }
    if export_format.wants_choice:
        rule = parse_preference_rule(
            aspect=request.aspect, combine=request.combine, aspects=list(participants.aspects.values())
        )
        basis["choice"] = {"by": rule.name, "in_words": rule.in_words}
    if request.split:
        basis["split"] = request.split.in_words()
    return basis


def build_manifest_header(export_format: ExportFormat, evaluation: Evaluation) -> dict[str, object]:
    return {
        "evaluation": {"slug": evaluation.slug, "name": evaluation.name},
        "format": export_format.name,
        "product": {"name": PRODUCT, "version": settings.VERSION},
    }


def list_exported_rubrics(participants: Participants) -> list[RubricVersion]:
    """The versions that reviews used, that judges use, and that is used for reviews now."""
    reviewed = Review.objects.filter(rubric_version=OuterRef("pk"), state__in=SAVED_REVIEW_STATES)
    versions = RubricVersion.objects.filter(rubric__evaluation=participants.evaluation).select_related("rubric")
    mine = {judge.rubric_version_id for judge in participants.judges.values()} | {
        participants.evaluation.review_rubric_id
    }
    return [
        version
        for version in versions.annotate(reviewed=Exists(reviewed)).order_by("pk")
        if version.reviewed or version.pk in mine
    ]


def describe_rubric_version(version: RubricVersion) -> dict[str, object]:
    return {
        "name": format_rubric_name(version),
        "kind": version.rubric.kind,
        "sha256": version.sha256,
        "aspects": [aspect.key for aspect in version.spec().aspects],
    }


def build_export_counts(tally: ExportTally) -> dict[str, object]:
    return {
        # Scores are of responses: where they are exported no comparisons are counted.
        **({"comparisons": tally.comparisons} if tally.comparisons or not tally.rows else {}),
        "rows": tally.rows,
        "labels": dict(sorted(tally.sources.items())),
        "excluded": dict(sorted(tally.excluded.items())),
        "noted": dict(sorted(tally.noted.items())),
    }


def build_card_facts(request: ExportRequest, participants: Participants, manifest: Mapping[str, object]) -> CardFacts:
    """The facts that the card of a data set shows."""
    evaluation, names = participants.evaluation, participants.list_names()
    rubrics = [
        CardRubric(
            format_rubric_name(version),
            version.spec().instructions,
            [(aspect.key, aspect.definition) for aspect in version.spec().aspects],
        )
        for version in list_exported_rubrics(participants)
    ]
    return CardFacts(
        name=evaluation.name,
        description=evaluation.description,
        rubrics=rubrics,
        people=len(names.people),
        judges=[
            (judge["judge"], judge["kind"], judge["model"], judge["rubric"] or "–")
            for judge in participants.introduced.values()
        ],
        policy=POLICY_DESCRIPTIONS[request.policy] if request.policy else "",
        provenance={
            "product": f"{PRODUCT} {settings.VERSION}",
            **{key: manifest[key] for key in ("filters", "options")},
        },
    )
