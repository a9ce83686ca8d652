"""The creation of an evaluation with its rubric and owner."""

from typing import Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.text import slugify

from evaluations.access import Right, require_right
from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.roles import Role
from evaluations.domain.rubrics import RubricOrigin
from evaluations.domain.texts import normalize_lines
from evaluations.judge_prompts.builtin_rubrics import SIX_ASPECT_NAME
from evaluations.members.services import set_role
from evaluations.models.evaluations import Evaluation
from evaluations.models.users import User
from evaluations.rubrics.selectors import get_builtin_rubric
from evaluations.rubrics.services import add_rubric

# Agreement between reviewers takes two reviews of the same comparison.
DEFAULT_REVIEWS_WANTED: Final = 2


def suggest_slug(name: str) -> str:
    slug = slugify(name)[:80].strip("-_")
    if not slug:
        raise InputRefused("Enter a URL name: none can be generated from this name.", field="slug")
    return slug


@transaction.atomic
def create_evaluation(
    *,
    slug: str,
    name: str,
    owner: User | None,
    by: User | None,
    description: str = "",
    rubric: str = SIX_ASPECT_NAME,
    reviews_wanted: int = DEFAULT_REVIEWS_WANTED,
    is_example: bool = False,
) -> Evaluation:
    """Create an evaluation with a built-in rubric and its owner. ``by`` None: a command on the machine."""
    require_right(by, Right.CREATE_EVALUATIONS)
    if slug != slugify(slug) or not slug:
        raise InputRefused(
            f"“{slug}” is not a valid URL name. Use lowercase letters, digits and hyphens.", field="slug"
        )
    spec = get_builtin_rubric(rubric)
    if Evaluation.objects.filter(slug=slug).exists():
        raise InputRefused(f"The URL name “{slug}” is taken. Choose another one.")
    evaluation = Evaluation(
        slug=slug,
        name=name.strip(),
        description=normalize_lines(description),
        reviews_wanted=reviews_wanted,
        is_example=is_example,
    )
    try:
        evaluation.clean_fields()
    except ValidationError as error:
        column, wrong = next(iter(error.message_dict.items()))
        raise InputRefused(f"{column}: {' '.join(wrong)}", field=column) from error
    evaluation.save()
    record_event("created", evaluation, user=owner, evaluation=evaluation, after={"slug": slug, "name": name})
    evaluation.review_rubric = add_rubric(evaluation, name=rubric, spec=spec, origin=RubricOrigin.BUILTIN, user=owner)
    evaluation.save(update_fields=["review_rubric"])
    if owner is not None:
        set_role(evaluation, owner, Role.OWNER, by=owner)
    return evaluation
