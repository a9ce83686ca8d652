"""The providers and local servers that can be chosen by name when an endpoint is added."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Provider:
    """A preset. ``has_own_url``: the address is the same for everyone, so nobody types it."""

    slug: str
    name: str
    base_url: str
    has_own_url: bool = True
    needs_key: bool = True
    url_hint: str = ""


AZURE_HINT: Final = "Your resource, such as https://NAME.openai.azure.com. The model is the name of your deployment."
LOCAL_HINT: Final = "As the worker reaches it. On another machine or in a container, change the host."
PROVIDERS: Final = (
    Provider("openai", "OpenAI", "https://api.openai.com/v1"),
    Provider("azure", "Azure OpenAI", "", has_own_url=False, url_hint=AZURE_HINT),
    Provider("anthropic", "Anthropic", "https://api.anthropic.com/v1"),
    Provider("google", "Google", "https://generativelanguage.googleapis.com/v1beta/openai"),
    Provider("openrouter", "OpenRouter", "https://openrouter.ai/api/v1"),
    Provider("mistral", "Mistral", "https://api.mistral.ai/v1"),
    Provider("together", "Together", "https://api.together.xyz/v1"),
    Provider("groq", "Groq", "https://api.groq.com/openai/v1"),
    Provider("vllm", "vLLM", "http://localhost:8000/v1", has_own_url=False, needs_key=False, url_hint=LOCAL_HINT),
    Provider("ollama", "Ollama", "http://localhost:11434/v1", has_own_url=False, needs_key=False, url_hint=LOCAL_HINT),
    Provider(
        "lm_studio", "LM Studio", "http://localhost:1234/v1", has_own_url=False, needs_key=False, url_hint=LOCAL_HINT
    ),
    Provider("other", "Other", "", has_own_url=False, needs_key=False, url_hint="An OpenAI-compatible API."),
)
PROVIDERS_BY_SLUG: Final = {provider.slug: provider for provider in PROVIDERS}
