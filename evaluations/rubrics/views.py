"""The pages of rubrics."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from evaluations.access import Action, require_evaluation
from evaluations.domain.errors import InputRefused
from evaluations.domain.rubrics import CURRENT_LAYOUT, RubricKind, RubricOrigin, RubricSpec
from evaluations.evaluation_settings.selectors import get_rubric_change_impact, list_review_rubrics
from evaluations.models.evaluations import Evaluation
from evaluations.models.rubrics import Rubric, RubricVersion
from evaluations.rubrics.drafts import (
    PromptDraft,
    RubricPreview,
    apply_placeholder_fields,
    clean_document,
    document_boilerplate,
    draft_first_version,
    find_prompt_drafts,
    preview_rubric,
)
from evaluations.rubrics.forms import (
    PREVIEW_STEP,
    BuiltinForm,
    PasteForm,
    PlaceholderForm,
    RubricEditor,
    RubricNameForm,
    bind_editor,
    make_editor_for_spec,
    rearrange_editor,
)
from evaluations.rubrics.formsets import describe_examples
from evaluations.rubrics.selectors import (
    get_continuable_rubric_or_404,
    get_current_builtin,
    get_spec_with_overall,
    list_rubrics_with_counts,
    list_versions,
    missing_placeholder_warnings,
)
from evaluations.rubrics.services import create_builtin_rubric, create_next_version, create_rubric
from evaluations.web.forms import submit_form
from evaluations.web.pagination import paginate
from evaluations.web.requests import AuthenticatedRequest
from evaluations.web.sorting import SortColumn, parse_sorting


def render_editor(
    request: AuthenticatedRequest,
    template: str,
    context: Mapping[str, object],
    editor: RubricEditor,
    seen: RubricPreview | None,
    status: int = 200,
) -> HttpResponse:
    """The page, or the prompt alone if htmx asks for the preview."""
    asks_for_look = request.htmx and request.POST.get("step") == PREVIEW_STEP
    template = "rubric_next/_look.html" if asks_for_look else template
    return render(request, template, {**context, "page": "rubrics", "editor": editor, "look": seen}, status=status)


def open_editor(
    request: AuthenticatedRequest, template: str, context: Mapping[str, Any], spec: RubricSpec
) -> HttpResponse:
    return render_editor(
        request, template, context, make_editor_for_spec(spec), preview_rubric(context["evaluation"], spec)
    )


def answer_editor(
    request: AuthenticatedRequest,
    template: str,
    context: Mapping[str, Any],
    kind: RubricKind,
    write: Callable[[RubricSpec, RubricEditor], str],
    about: forms.Form | None = None,
) -> HttpResponse:
    """Answer a POST of the editor: preview the prompt, rearrange a list, or save; ``write`` returns the next address.

    ``about``: a second form that must be valid as well.
    """
    step = request.POST.get("step")
    if step is None:
        return save_editor(request, template, context, bind_editor(kind, request.POST), write, about)
    if step != PREVIEW_STEP:
        return render_editor(request, template, context, rearrange_editor(kind, request.POST, step), None)
    editor = bind_editor(kind, request.POST)
    seen = preview_rubric(context["evaluation"], editor.spec()) if editor.is_valid() else None
    return render_editor(request, template, context, editor, seen)


def save_editor(
    request: AuthenticatedRequest,
    template: str,
    context: Mapping[str, Any],
    editor: RubricEditor,
    write: Callable[[RubricSpec, RubricEditor], str],
    about: forms.Form | None,
) -> HttpResponse:
    if not editor.is_valid() & (about is None or about.is_valid()):
        return render_editor(request, template, context, editor, None, status=422)
    try:
        return redirect(write(editor.spec(), editor))
    except InputRefused as refused:
        editor.version.add_error(None, str(refused))
        return render_editor(
            request, template, context, editor, preview_rubric(context["evaluation"], editor.spec()), status=422
        )


@require_safe
def rubric(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    evaluation = require_evaluation(request.user, slug)
    shown_rubric = get_object_or_404(Rubric, evaluation=evaluation, pk=pk)
    versions = list(list_versions(shown_rubric))
    version = choose_version(versions, request.GET.get("version", ""))
    spec = version.spec()
    answer, _, pattern = spec.answer_format.partition(":")
    context = {
        "page": "rubrics",
        "evaluation": evaluation,
        "rubric": shown_rubric,
        "versions": versions,
        "version": version,
        "spec": spec,
        "answer": answer,
        "pattern": pattern,
        "examples": describe_examples(spec),
        "judges": list(version.judges.current().order_by("name")),
        "can_be_continued": shown_rubric.is_editable,
        "can_be_used": list_review_rubrics(evaluation).filter(pk=version.pk).exists(),
        "warnings": missing_placeholder_warnings(evaluation, spec),
        "offers_overall": version == versions[0] and get_spec_with_overall(version) is not None,
        "has_newer_text": version == versions[0] and get_current_builtin(version) is not None,
    }
    return render(request, "rubric/rubric.html", context)


def choose_version(versions: list[RubricVersion], number: str) -> RubricVersion:
    """The version with this number; the newest by default."""
    for version in versions:
        if not number or str(version.number) == number:
            return version
    raise Http404


@require_http_methods(["GET", "HEAD", "POST"])
def rubric_new(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The three ways to a rubric; a POST creates a built-in one."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    form = BuiltinForm(request.POST if request.method == "POST" else None)
    if form.is_valid() and (
        version := submit_form(form, create_builtin_rubric, evaluation, **form.cleaned_data, user=user)
    ):
        messages.success(request, f"Rubric “{version.rubric}” created.")
        return redirect("rubric", slug, version.rubric_id)
    context = {"page": "rubrics", "evaluation": evaluation, "form": form, "paste": PasteForm()}
    return render(request, "rubric_new/rubric_new.html", context, status=422 if form.is_bound else 200)


NEXT_VERSION_TEMPLATE = "rubric_next/rubric_next.html"
CHANGED_TEXTS: Final[Mapping[str, Callable[[RubricVersion], RubricSpec | None]]] = {
    "builtin": get_current_builtin,
    "overall": get_spec_with_overall,
}


@require_http_methods(["GET", "HEAD", "POST"])
def rubric_next(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """The editor; a POST with a ``step`` rearranges its lists or previews, any other writes the version.

    ``?text=builtin`` starts from the current text of a built-in rubric instead of the latest version's,
    ``?text=overall`` with Overall as the first aspect.
    """
    user = request.user
    rubric = get_continuable_rubric_or_404(user, slug, pk)
    latest = rubric.versions.order_by("-number")[0]
    action = reverse("rubric_next", args=[slug, pk])
    context = {
        "evaluation": rubric.evaluation,
        "rubric": rubric,
        "action": action,
        "ending": get_rubric_change_impact(rubric.evaluation),
        "changes_layout": latest.layout != CURRENT_LAYOUT and not latest.placeholders,
    }

    def write(spec: RubricSpec, editor: RubricEditor) -> str:
        for_reviews = editor.is_pairwise and editor.version.cleaned_data["for_reviews"]
        version = create_next_version(rubric, spec, user=user, for_reviews=for_reviews)
        messages.success(request, f"Version {version.number} saved.")
        return f"{reverse('rubric', args=[slug, pk])}?version={version.number}"

    if request.method != "POST":
        change = CHANGED_TEXTS.get(request.GET.get("text", ""))
        spec = (change(latest) if change else None) or latest.spec()
        return open_editor(request, NEXT_VERSION_TEMPLATE, context, spec)
    return answer_editor(request, NEXT_VERSION_TEMPLATE, context, RubricKind(rubric.kind), write)


FIRST_VERSION_TEMPLATE = "rubric_write/rubric_write.html"


@require_http_methods(["GET", "HEAD", "POST"])
def rubric_write(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The editor of a first version; ``kind`` is pairwise or pointwise."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    kind = parse_rubric_kind((request.POST if request.method == "POST" else request.GET).get("kind", ""))
    if request.method != "POST":
        return open_first_version(request, evaluation, draft_first_version(evaluation, kind))
    # Steps of the editor do not require the name.
    about = RubricNameForm(initial=request.POST.dict()) if "step" in request.POST else RubricNameForm(request.POST)

    def write(spec: RubricSpec, editor: RubricEditor) -> str:
        version = create_rubric(
            evaluation, name=about.cleaned_data["name"], spec=spec, origin=RubricOrigin.OWN, user=user
        )
        messages.success(request, f"Rubric “{version.rubric}” created.")
        return reverse("rubric", args=[slug, version.rubric_id])

    return answer_editor(
        request, FIRST_VERSION_TEMPLATE, first_version_context(evaluation, kind, about), kind, write, about
    )


def parse_rubric_kind(word: str) -> RubricKind:
    word = word or RubricKind.PAIRWISE
    if word not in set(RubricKind):
        raise Http404
    return RubricKind(word)


def open_first_version(
    request: AuthenticatedRequest, evaluation: Evaluation, spec: RubricSpec, name: str = ""
) -> HttpResponse:
    about = RubricNameForm(initial={"kind": spec.kind, "name": name})
    return open_editor(request, FIRST_VERSION_TEMPLATE, first_version_context(evaluation, spec.kind, about), spec)


def first_version_context(evaluation: Evaluation, kind: RubricKind, about: RubricNameForm) -> dict[str, object]:
    action = reverse("rubric_write", args=[evaluation.slug])
    return {"evaluation": evaluation, "kind": kind, "about": about, "action": action}


@require_http_methods(["GET", "HEAD", "POST"])
def rubric_paste(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The pasted text, then its prompts, their placeholders, and the editor filled in with them.

    ``clean`` in a POST removes the recognised boilerplate and changes nothing else.
    """
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    if request.method != "POST":
        return render_paste(request, evaluation, PasteForm())
    cleans = "clean" in request.POST
    data = request.POST.copy()
    if cleans:
        data["text"] = clean_document(data.get("text", ""))
    form = PasteForm(data)
    drafts = submit_form(form, find_prompt_drafts, form.cleaned_data["text"]) if form.is_valid() else None
    if not drafts:
        return render_paste(request, evaluation, form, status=422)
    boilerplate = document_boilerplate(form.cleaned_data["text"])
    by_number = {str(number): draft for number, draft in enumerate(drafts)}
    draft = drafts[0] if len(drafts) == 1 else by_number.get(data.get("prompt", ""))
    if draft is None:
        return render_paste(request, evaluation, form, drafts=drafts, boilerplate=boilerplate)
    mapping = make_placeholder_form(draft, data, is_sent="mapped" in data and not cleans)
    if mapping.is_valid():
        spec = apply_placeholder_fields(evaluation, draft, mapping.mapping())
        return open_first_version(request, evaluation, spec, draft.prompt.name)
    status = 422 if mapping.is_bound else 200
    about = {
        "draft": draft,
        "mapping": mapping,
        "place": drafts.index(draft),
        "boilerplate": boilerplate,
        "warnings": missing_placeholder_warnings(evaluation, draft.spec),
    }
    return render_paste(request, evaluation, form, status, **about)


def make_placeholder_form(draft: PromptDraft, data: QueryDict, *, is_sent: bool) -> PlaceholderForm:
    """The form of the draft's placeholders; before it is submitted it keeps earlier choices."""
    if is_sent:
        return PlaceholderForm(data, draft.placeholders, draft.spec.placeholders)
    names = {placeholder: data.get(f"placeholder_{place}", "") for place, placeholder in enumerate(draft.placeholders)}
    chosen = {placeholder: field for placeholder, field in names.items() if field}
    return PlaceholderForm(None, draft.placeholders, {**draft.spec.placeholders, **chosen})


def render_paste(
    request: AuthenticatedRequest, evaluation: Evaluation, form: PasteForm, status: int = 200, **extra_context: object
) -> HttpResponse:
    context = {"page": "rubrics", "evaluation": evaluation, "form": form, **extra_context}
    return render(request, "rubric_paste/rubric_paste.html", context, status=status)


@require_safe
def rubrics(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    evaluation = require_evaluation(request.user, slug)
    sorting = parse_sorting(request, SortColumn("created"), SortColumn("name", "name"))
    context = {
        "page": "rubrics",
        "evaluation": evaluation,
        "page_of_rows": paginate(request, list_rubrics_with_counts(evaluation), sorting=sorting),
        "sorting": sorting,
        "asked": Evaluation.objects.select_related("review_rubric").get(pk=evaluation.pk).review_rubric,
    }
    return render(request, "rubrics/rubrics.html", context)
