"""The editor of a rubric, the same whether a first or a next version is written."""

from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from evaluations.domain import InputRefused, RubricKind, RubricSpec
from evaluations.forms.rubric_next import LOOK, Editor, editor_after, editor_of, editor_sent
from evaluations.services.judging.drafting import Look, look


def shown(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    editor: Editor,
    seen: Look | None,
    status: int = 200,
) -> HttpResponse:
    """The page, or the prompt alone where htmx asks what it looks like by now."""
    asks_for_look = request.htmx and request.POST.get("step") == LOOK  # type: ignore[attr-defined]
    template = "rubric_next/_look.html" if asks_for_look else template
    return render(request, template, {**context, "page": "rubrics", "editor": editor, "look": seen}, status=status)


def begun(request: HttpRequest, template: str, context: Mapping[str, Any], spec: RubricSpec) -> HttpResponse:
    return shown(request, template, context, editor_of(spec), look(context["evaluation"], spec))


def answered(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    kind: RubricKind,
    write: Callable[[RubricSpec, Editor], str],
    about: forms.Form | None = None,
) -> HttpResponse:
    """What a POST asks for: a look at the prompt, a step in a list, or to write; ``write`` says where to go then.

    ``about``: a form beside the editor that must be filled in as well.
    """
    step = request.POST.get("step")
    if step is None:
        return written(request, template, context, editor_sent(kind, request.POST), write, about)
    if step != LOOK:
        return shown(request, template, context, editor_after(kind, request.POST, step), None)
    editor = editor_sent(kind, request.POST)
    seen = look(context["evaluation"], editor.spec()) if editor.is_valid() else None
    return shown(request, template, context, editor, seen)


def written(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    editor: Editor,
    write: Callable[[RubricSpec, Editor], str],
    about: forms.Form | None,
) -> HttpResponse:
    if not editor.is_valid() & (about is None or about.is_valid()):
        return shown(request, template, context, editor, None, status=422)
    try:
        return redirect(write(editor.spec(), editor))
    except InputRefused as refused:
        editor.version.add_error(None, str(refused))
        return shown(request, template, context, editor, look(context["evaluation"], editor.spec()), status=422)
