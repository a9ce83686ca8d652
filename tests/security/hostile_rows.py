"""Markup that would act if a page let it, put into every text that members, files and servers can bring."""

from typing import Any, Final

from django.apps import apps
from django.db import IntegrityError, models, transaction

from evaluations.models.comparisons import Query, Rendering, Response
from evaluations.models.evaluations import Event
from evaluations.models.imports import Import
from evaluations.models.users import ApiToken, SignInLink
from tests.rendering.payloads import PAYLOADS as RENDERED_PAYLOADS

MARK: Final = "planted"
PAYLOADS: Final = (
    f"<script>window.{MARK}=1</script>",
    f"</script><script>window.{MARK}=1</script>",
    f'"><img src=x onerror=window.{MARK}=1 class={MARK}>',
    f"' autofocus onfocus=window.{MARK}=1 class={MARK} x='",
    f"</textarea></title></style><svg onload=window.{MARK}=1 class={MARK}>",
    f"--><details open ontoggle=window.{MARK}=1 class={MARK}>",
    f"[link](javascript:window.{MARK}=1)",
    f"<a href='javascript:window.{MARK}=1' class={MARK}>x</a>",
    f"<a href='data:text/html,<script>parent.{MARK}=1</script>'>x</a>",
    f'![x](x "onerror=window.{MARK}=1")',
    f"[x]: javascript:window.{MARK}=1\n\n[x]",
    f"<math><mtext><table><mglyph><style><img src=x onerror=window.{MARK}=1></style></mglyph></table></mtext></math>",
    f"<noscript><p title='</noscript><img src=x onerror=window.{MARK}=1>'></noscript>",
    f"<base href='https://{MARK}.example/'>",
    f"<meta http-equiv=refresh content='0;url=https://{MARK}.example/'>",
    f"<form action='https://{MARK}.example/'><input name=csrfmiddlewaretoken></form>",
    f"<iframe srcdoc='<script>parent.{MARK}=1</script>'></iframe>",
    f"<object data='data:text/html,{MARK}'></object><embed src=x>",
    f"<div hx-get='/e/x' hx-trigger=load hx-on:load='window.{MARK}=1' class={MARK}></div>",
    f"<button formaction='javascript:window.{MARK}=1'>x</button>",
    f"<img src='https://{MARK}.example/pixel.png'>",
    f"<p style='position:fixed;inset:0;background:url(https://{MARK}.example/)'>x</p>",
    f'`<b class={MARK}>`\n\n```{MARK}"><script>window.{MARK}=1</script>\ncode\n```',
    f"$\\href{{javascript:window.{MARK}=1}}{{x}}$ $\\style{{color:red}}{{x}}$",
    "{{ request.META }} {% debug %} ${7*7} #{7*7} <%= 7*7 %>",
    f"\u202e\u2066<svg/onload=window.{MARK}=1>\u2069",
    f"<scr\x0bipt>window.{MARK}=1</scr\x0bipt>",
    f"<svg><script href='data:,window.{MARK}=1'></script></svg>",
)
HOSTILE_TEXT: Final = "\n\n".join([*PAYLOADS, *(text.replace("\0", "") for text in RENDERED_PAYLOADS)])
# Words of the program: no text that anybody brings.
OWN_WORDS: Final = {
    *(
        "state",
        "kind",
        "kinds",
        "step",
        "shown",
        "stage",
        "choice",
        "source",
        "outcome",
        "origin",
        "format",
        "strategy",
    ),
    *("strategy", "selection_method", "scopes", "verb", "object_type", "role", "channel", "mode", "reply_shape"),
    *("slug", "key", "cluster", "label_policy", "reveal", "theme", "timezone", "password", "secret", "fence_key"),
    *(
        "request_shape",
        "dialect",
        "prefix",
        "fingerprint",
        "settings_sha256",
        "username",
        "base_url",
        "url",
        "file",
        "location",
    ),
    *("content_type", "claimed_by", "holder", "host", "version", "reuse_key", "file_name", "lease", "tool"),
}


def plant_hostile_texts(model: type[models.Model], **rows: Any) -> int:
    """Put the payloads into every free text of these rows; returns how many columns took them."""
    return sum(plant(model, field, rows) for field in model._meta.concrete_fields if is_free_text(field))


def is_free_text(field: Any) -> bool:
    texts = isinstance(field, models.CharField | models.TextField)
    return texts and not (field.choices or field.name in OWN_WORDS or "sha256" in field.name or field.primary_key)


def plant(model: type[models.Model], field: Any, rows: dict[str, Any]) -> bool:
    """A short column takes one payload, a longer one all of them."""
    whole = HOSTILE_TEXT if field.max_length is None else PAYLOADS[2]
    try:
        with transaction.atomic():
            return bool(model._base_manager.filter(**rows).update(**{field.name: whole[: field.max_length]}))
    except IntegrityError:  # the database wants something else there
        return False


def plant_everywhere(number: int) -> int:
    """Every free text of the full evaluation of that number, its prompts and responses, and its event and bad rows."""
    planted = 0
    for model in apps.get_app_config("evaluations").get_models():
        if model in (Rendering, SignInLink, ApiToken):
            continue
        planted += plant_hostile_texts(model, pk__gte=number, pk__lt=number + 10)
    messages = [{"role": "user", "content": HOSTILE_TEXT}, {"role": HOSTILE_TEXT[:40], "content": HOSTILE_TEXT}]
    for texts in (Query, Response):
        texts._base_manager.filter(pk__gte=number, pk__lt=number + 10).update(messages=messages)
    Event.objects.filter(pk=number).update(before={HOSTILE_TEXT[:80]: HOSTILE_TEXT}, after={"x": HOSTILE_TEXT})
    Import.objects.filter(pk=number).update(bad_rows=[{"line": 17, "reason": HOSTILE_TEXT}])
    return planted
