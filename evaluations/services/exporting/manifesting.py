"""What goes with an exported file: all that its rows rest on, what was counted, and who made it when."""

import json
from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.db.models import Exists, OuterRef

from evaluations.domain import SAVED_REVIEW_STATES, LabelPolicy, deciding
from evaluations.formats.card import Facts
from evaluations.formats.card import Rubric as RubricTold
from evaluations.formats.leaving import Leaving, Tally
from evaluations.models import Evaluation, Export, Review, RubricVersion
from evaluations.services.exporting.casting import Cast, rubric_name
from evaluations.services.exporting.wanting import Wanted, filters_of, options_of

PRODUCT: Final = "judgeweb"
POLICIES: Final = {
    LabelPolicy.PEOPLE_THEN_JUDGES: "What people say; where no person voted, what a panel of judges or one judge says.",
    LabelPolicy.PEOPLE: "What people say, and nothing where no person voted.",
}


def foundation(leaving: Leaving, wanted: Wanted, those: Cast) -> dict[str, Any]:
    """What the rows rest on, known before the first: the same for the same file."""
    evaluation = those.evaluation
    told: dict[str, Any] = {
        **about(leaving, evaluation),
        "label_policy": wanted.policy,
        "filters": filters_of(wanted),
        "options": options_of(wanted),
        "aspects": list(those.aspects.values()),
        "rubrics": [rubric_told(version) for version in rubrics_of(those)],
        "judges": [{**those.introduced[pk], "fingerprint": judge.fingerprint} for pk, judge in those.judges.items()],
        "people": len(those.names().people),
        "gold": list(those.names().gold),
    }
    if leaving.wants_choice:
        how = deciding(aspect=wanted.aspect, combine=wanted.combine, aspects=list(those.aspects.values()))
        told["choice"] = {"by": how.name, "in_words": how.in_words}
    if wanted.split:
        told["split"] = wanted.split.in_words()
    return told


def about(leaving: Leaving, evaluation: Evaluation) -> dict[str, Any]:
    return {
        "evaluation": {"slug": evaluation.slug, "name": evaluation.name},
        "format": leaving.name,
        "product": {"name": PRODUCT, "version": settings.VERSION},
    }


def rubrics_of(those: Cast) -> list[RubricVersion]:
    """The versions that people reviewed by, that judges here were given, and that reviews are made by now."""
    reviewed = Review.objects.filter(rubric_version=OuterRef("pk"), state__in=SAVED_REVIEW_STATES)
    versions = RubricVersion.objects.filter(rubric__evaluation=those.evaluation).select_related("rubric")
    mine = {judge.rubric_version_id for judge in those.judges.values()} | {those.evaluation.review_rubric_id}
    return [
        version
        for version in versions.annotate(reviewed=Exists(reviewed)).order_by("pk")
        if version.reviewed or version.pk in mine
    ]


def rubric_told(version: RubricVersion) -> dict[str, Any]:
    return {
        "name": rubric_name(version),
        "kind": version.rubric.kind,
        "sha256": version.sha256,
        "aspects": [aspect.key for aspect in version.spec().aspects],
    }


def counts_of(tally: Tally) -> dict[str, Any]:
    return {
        # Scores are of responses: where they are exported no comparisons are counted.
        **({"comparisons": tally.comparisons} if tally.comparisons or not tally.rows else {}),
        "rows": tally.rows,
        "labels": dict(sorted(tally.sources.items())),
        "excluded": dict(sorted(tally.excluded.items())),
        "noted": dict(sorted(tally.noted.items())),
    }


def facts_of(wanted: Wanted, those: Cast, told: Mapping[str, Any]) -> Facts:
    """The same for the card of a data set, which people read."""
    evaluation, names = those.evaluation, those.names()
    rubrics = [
        RubricTold(
            rubric_name(version),
            version.spec().instructions,
            [(aspect.key, aspect.definition) for aspect in version.spec().aspects],
        )
        for version in rubrics_of(those)
    ]
    return Facts(
        name=evaluation.name,
        description=evaluation.description,
        rubrics=rubrics,
        people=len(names.people),
        judges=[(one["judge"], one["kind"], one["model"], one["rubric"] or "–") for one in those.introduced.values()],
        policy=POLICIES[wanted.policy] if wanted.policy else "",
        provenance={"product": f"{PRODUCT} {settings.VERSION}", **{key: told[key] for key in ("filters", "options")}},
    )


def manifest_of(export: Export) -> dict[str, Any]:
    """All that is known of a finished file, as it goes beside it."""
    return {
        **export.manifest,
        "file": {"name": export.file_name, "sha256": export.sha256, "bytes": export.bytes, "rows": export.rows},
        "made": {
            "export": export.pk,
            "by": export.user.username if export.user else None,
            "began": export.created_at.isoformat(timespec="seconds"),
            "finished": export.finished_at.isoformat(timespec="seconds") if export.finished_at else None,
        },
    }


def document(told: Mapping[str, Any]) -> bytes:
    """JSON with its keys in order, a line each: the same words give the same bytes."""
    return (json.dumps(told, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def manifest_name(export: Export) -> str:
    return f"{export.file_name}.manifest.json"
