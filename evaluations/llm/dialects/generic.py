"""A server of which only the protocol is known: it may be any provider's, or a gateway to several of them.

The numbers of errors: https://docs.bigmodel.cn/cn/api/api-code (Zhipu),
https://platform.minimax.io/docs/api-reference/errorcode.md (MiniMax). The words of others:
https://api-docs.deepseek.com/quick_start/error_codes, https://help.aliyun.com/en/model-studio/error-code,
https://platform.kimi.com/docs/api/errors, https://cloud.baidu.com/doc/qianfan-api/s/rmwbl43x7,
https://docs.mistral.ai/api, https://developers.cloudflare.com/workers-ai/platform/errors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from evaluations.domain.json_values import JsonMapping
from evaluations.domain.judges import Dialect
from evaluations.llm.dialects.adapter import Adapter, ErrorWords, Headers
from evaluations.llm.dialects.chat import build_chat_body, parse_chat_answer
from evaluations.llm.dialects.gateways import (
    classify_litellm_error,
    classify_openrouter_error,
    litellm_inner_error,
    openrouter_inner_error,
)
from evaluations.llm.dialects.hosted import add_xai_total, classify_groq_error, classify_xai_error, is_xai_usage
from evaluations.llm.error_body import ErrorBody
from evaluations.llm.exchange import Answer, LLMError, Request, Server
from evaluations.llm.token_usage import object_member, parse_nano_usd

# Words of providers without a dialect of their own.
OTHER_ERROR_WORDS: Final = ErrorWords(
    too_long=(
        "`inputs` tokens",  # TGI: `inputs` tokens + `max_new_tokens` must be <= 4096
        *("exceeded model token limit", "prompt 超长", "range of input length", "tokens_limit_reached"),
        *("tokens_too_long", "characters_too_long", "max input characters", "max input tokens"),
    ),
    filter=(
        *("content exists risk", "data_inspection_failed", "datainspectionfailed", "不安全或敏感内容", "敏感内容"),
        *("unsafe or sensitive content", "considered high risk", "new_sensitive", "unsafe_request"),
    ),
    credit=(
        *("arrearage", "余额不足", "已欠费", "exceeded_current_quota", "freetieronly", "suspended, possibly due to"),
        *("insufficient credit", "credits expired", "insufficient_user_quota", "额度不足"),
    ),
    quota=("今日调用次数限额", "使用上限", "usage limit exceeded"),
    model=("unknown_model", "模型不存在", "not found for account"),
    rate=("并发数过高", "频率过高", "速率限制", "访问量过大"),
)
# Codes that mean a status of the protocol: Zhipu's are in an error, MiniMax's in a body of status 200.
ZHIPU_CODES: Final = {
    **dict.fromkeys(("1301",), (400, "content_filter")),
    **dict.fromkeys(("1261",), (400, "context_length_exceeded")),
    **dict.fromkeys(("1113",), (402, "insufficient_balance")),
    **dict.fromkeys(("1302", "1303", "1305", "1312"), (429, "rate_limit")),
    **dict.fromkeys(("1304", "1308", "1310"), (429, "requests_per_day")),
    **dict.fromkeys(("1211",), (400, "model_not_found")),
    **dict.fromkeys(("1000", "1001", "1002", "1003", "1004"), (401, "invalid_api_key")),
}
MINIMAX_CODES: Final = {
    **dict.fromkeys((1002, 1041), (429, "rate_limit")),
    **dict.fromkeys((1004, 2049), (401, "invalid_api_key")),
    **dict.fromkeys((1008,), (402, "insufficient_balance")),
    **dict.fromkeys((1026, 1027), (400, "content_filter")),
    **dict.fromkeys((1039,), (400, "context_length_exceeded")),
    **dict.fromkeys((2056,), (429, "requests_per_day")),
    **dict.fromkeys((1042, 2013), (400, "invalid_params")),
}
TRANSIENT_STATUS: Final = 503  # for any other code of MiniMax, which reports a fault on its side
SUCCESS_CODES: Final = (0, 200, "0", "200", "", None)


def perplexity_cost(usage: Mapping[str, object], headers: Headers) -> int | None:
    """Perplexity reports a total with its parts, search included."""
    return parse_nano_usd(object_member(usage, "cost").get("total_cost"))


def find_unmarked_error(body: Mapping[str, object]) -> Mapping[str, object] | None:
    """An error in a body of status 200 without an ``error`` member: a code with a message, or a list of faults."""
    if body.get("choices"):
        return None
    base = object_member(body, "base_resp")
    number = base.get("status_code")
    if number not in SUCCESS_CODES:
        unknown = (TRANSIENT_STATUS, "")
        status, kind = MINIMAX_CODES.get(number, unknown) if isinstance(number, int) else unknown
        return {"code": status, "type": kind, "message": base.get("status_msg") or f"status {number}"}
    if body.get("errors") and body.get("success") is not True:
        return {"errors": body["errors"]}
    code = body.get("code", body.get("status_code", body.get("error_code")))
    sentence = next((body[name] for name in ("message", "msg", "error_msg", "detail") if body.get(name)), None)
    if sentence is not None and "error" not in body and (code not in SUCCESS_CODES or "choices" not in body):
        return {"code": code, "message": sentence}
    return {"message": body["fault"]} if body.get("fault") else None


def zhipu_inner_error(error: ErrorBody) -> ErrorBody:
    """Zhipu's code as a status and as the word that all dialects share."""
    numbers = [number for number in error.code.split() if number in ZHIPU_CODES]
    if not numbers or not 400 <= error.status < 500:
        return litellm_inner_error(openrouter_inner_error(error))
    status, kind = ZHIPU_CODES[numbers[-1]]
    return replace(error, status=status, code=f"{error.code} {kind}", is_known_status=True)


def classify_generic_error(error: ErrorBody, server: Server, request: Request, headers: Headers) -> LLMError | None:
    """Alibaba's errors on limits and on models that only stream; else the gateways' errors."""
    if error.status == 429 and error.states(("allocationquota", "allocated quota exceeded")):
        return error.retry(busy=True)
    if error.states(("enable_thinking",)):
        return error.stop(
            "The model thinks only in a stream: add enable_thinking: false to the body of the judge's requests."
        )
    if error.states(("only support stream", "only supports stream")):
        return error.stop("The model answers only in a stream: choose another one.")
    meanings = (classify(error, server, request, headers) for classify in GATEWAY_CLASSIFIERS)
    return next((meaning for meaning in meanings if meaning is not None), None)


GATEWAY_CLASSIFIERS: Final = (
    classify_openrouter_error,
    classify_litellm_error,
    classify_groq_error,
    classify_xai_error,
)


def build_generic_adapter(adapters: Sequence[Adapter]) -> Adapter:
    """The adapter that understands the costs and faults of all these."""

    def any_cost(usage: Mapping[str, object], headers: Headers) -> int | None:
        functions = (*(adapter.cost for adapter in adapters), perplexity_cost)
        costs = (find_cost(usage, headers) for find_cost in functions)
        return next((cost for cost in costs if cost is not None), None)

    def any_fault(body: Mapping[str, object]) -> Mapping[str, object] | None:
        functions = (*(adapter.fault for adapter in adapters), find_unmarked_error)
        faults = (find_fault(body) for find_fault in functions)
        return next((fault for fault in faults if fault is not None), None)

    def read(body: JsonMapping, headers: Headers, request: Request) -> Answer | None:
        return parse_chat_answer(add_xai_total(body) if is_xai_usage(body) else body, headers, request, cost=any_cost)

    return Adapter(
        dialect=Dialect.GENERIC,
        body=build_chat_body,
        read=read,
        cost=any_cost,
        fault=any_fault,
        inner=zhipu_inner_error,
        meaning=classify_generic_error,
        words=OTHER_ERROR_WORDS,
    )
