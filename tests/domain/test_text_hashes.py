"""The quick ways to a sum and to a column of JSON give what the slow ones give."""

import json

from hypothesis import given
from hypothesis import strategies as st

from evaluations.domain.texts import Message, content_sha256, messages_sha256, messages_to_json, query_sha256

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
MESSAGES = st.lists(st.builds(lambda role, content: Message(role=role, content=content), TEXTS, TEXTS), min_size=1)


@given(MESSAGES, st.none() | TEXTS, st.none() | TEXTS)
def test_messages_have_one_sum_whichever_way_it_is_made(
    messages: list[Message], context: str | None, reference: str | None
) -> None:
    assert messages_sha256(messages) == content_sha256(messages)
    assert query_sha256(messages, context, reference) == content_sha256([messages, context, reference])
    assert messages_to_json(messages) == json.dumps(messages)
