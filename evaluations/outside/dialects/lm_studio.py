"""LM Studio: https://lmstudio.ai/docs/developer/openai-compat"""

from functools import partial
from typing import Any, Final

from evaluations.domain import Dialect
from evaluations.outside.addresses import root_of
from evaluations.outside.dialects.adapter import Adapter, Headers, Words
from evaluations.outside.dialects.chat import chat_body, limit_as_max_tokens, read_chat
from evaluations.outside.errors import LLMError, StopRun
from evaluations.outside.exchange import Request, Server
from evaluations.outside.wording import Said

WRONG_PATH: Final = ("unexpected endpoint or method",)
NOTHING_LOADED: Final = ("no models loaded", "no model loaded", "multiple models are loaded")


def meaning(said: Said, server: Server, request: Request, headers: Headers) -> LLMError | None:
    """It answers 200 to any path, with an error inside; a path without /v1 is the usual mistake."""
    known: dict[str, Any] = {"http_status": said.status, "body": said.body}
    right = f"{root_of(server.base_url)}/v1"
    if said.states(WRONG_PATH) and right != server.base_url:
        return StopRun(f"The base URL should end in /v1: {right}. LM Studio says: {said.message}", **known)
    if said.states(NOTHING_LOADED):
        return StopRun(f"LM Studio has not loaded “{request.model}”: load it there. It says: {said.message}", **known)
    return None


ADAPTER: Final = Adapter(
    dialect=Dialect.LM_STUDIO,
    ports=(1234,),
    body=partial(chat_body, limit_name=limit_as_max_tokens),
    read=read_chat,
    meaning=meaning,
    words=Words(
        too_long=("n_keep", "tokens to keep from the initial prompt", "trying to keep the first"),
        retry=("model unloaded", "model is unloaded", "model reloaded", "the model has crashed", "model crashed"),
        loading=(
            *('failed to load model "', "error loading model.", "could not load model", "unable to load model"),
            "insufficient system resources",
        ),
        remedy=NOTHING_LOADED,
    ),
)
