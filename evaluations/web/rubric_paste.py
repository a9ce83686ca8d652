"""Begin a rubric with a prompt that is pasted: choose it in its document, say what its placeholders mean."""

from collections.abc import Sequence
from typing import Any, cast

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from evaluations import access
from evaluations.access import Action
from evaluations.domain import InputRefused
from evaluations.forms.rubric_paste import MappingForm, PasteForm
from evaluations.models import Evaluation, User
from evaluations.services.judging.drafting import Draft, boilerplate_of, cleaned, drafts_in, with_fields
from evaluations.services.judging.judging import left_out_warnings
from evaluations.web import rubric_write


@require_http_methods(["GET", "HEAD", "POST"])
def rubric_paste(request: HttpRequest, slug: str) -> HttpResponse:
    """The text; then, one after the other, its prompts, their placeholders and the editor filled in with all of it.

    ``clean`` in a POST removes what was recognized as the page round the prompt, and changes nothing else.
    """
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug, Action.MANAGE)
    if request.method != "POST":
        return shown(request, evaluation, PasteForm())
    cleans = "clean" in request.POST
    data = request.POST.copy()
    if cleans:
        data["text"] = cleaned(data.get("text", ""))
    form = PasteForm(data)
    drafts = found(form)
    if not drafts:
        return shown(request, evaluation, form, status=422)
    boilerplate = boilerplate_of(form.cleaned_data["text"])
    draft = chosen(drafts, data.get("prompt", ""))
    if draft is None:
        return shown(request, evaluation, form, drafts=drafts, boilerplate=boilerplate)
    mapping = mapping_of(draft, data, is_sent="mapped" in data and not cleans)
    if mapping.is_valid():
        spec = with_fields(evaluation, draft, mapping.mapping())
        return rubric_write.begun(request, evaluation, spec, draft.prompt.name)
    status = 422 if mapping.is_bound else 200
    about = {
        "draft": draft,
        "mapping": mapping,
        "place": drafts.index(draft),
        "boilerplate": boilerplate,
        "warnings": left_out_warnings(evaluation, draft.spec),
    }
    return shown(request, evaluation, form, status, **about)


def mapping_of(draft: Draft, data: QueryDict, *, is_sent: bool) -> MappingForm:
    """The fields of the draft's placeholders; one that is not sent yet keeps what was chosen so far."""
    if is_sent:
        return MappingForm(data, draft.placeholders, draft.spec.placeholders)
    names = {one: data.get(f"placeholder_{place}", "") for place, one in enumerate(draft.placeholders)}
    chosen = {one: field for one, field in names.items() if field}
    return MappingForm(None, draft.placeholders, {**draft.spec.placeholders, **chosen})


def found(form: PasteForm) -> Sequence[Draft]:
    """The prompts of the text; none where it cannot be taken, and the form says why."""
    if not form.is_valid():
        return ()
    try:
        return drafts_in(form.cleaned_data["text"])
    except InputRefused as refused:
        form.add_error(None, str(refused))
        return ()


def chosen(drafts: Sequence[Draft], place: str) -> Draft | None:
    """The prompt of that place; the only one needs no choosing."""
    if len(drafts) == 1:
        return drafts[0]
    places = {str(number): draft for number, draft in enumerate(drafts)}
    return places.get(place)


def shown(
    request: HttpRequest, evaluation: Evaluation, form: PasteForm, status: int = 200, **found: Any
) -> HttpResponse:
    context = {"page": "rubrics", "evaluation": evaluation, "form": form, **found}
    return render(request, "rubric_paste/rubric_paste.html", context, status=status)
