"""What is recorded about who gets in."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class SecurityEventKind(StrEnum):
    SIGNED_IN = "signed_in"
    SIGNED_IN_BY_LINK = "signed_in_by_link"
    SIGN_IN_FAILED = "sign_in_failed"
    PASSWORD_REFUSED = "password_refused"
    THROTTLED = "throttled"
    PASSWORD_SET = "password_set"
    SESSIONS_ENDED = "sessions_ended"
    TOKENS_REVOKED = "tokens_revoked"
    TOKEN_MADE = "token_made"
    TOKEN_NEW_ADDRESS = "token_new_address"
    LINK_MADE = "link_made"
    JOIN_LINK_MADE = "join_link_made"
    JOIN_LINK_REVOKED = "join_link_revoked"
    JOINED_BY_LINK = "joined_by_link"
    ACCOUNT_DISABLED = "account_disabled"
    ACCOUNT_ENABLED = "account_enabled"
    POLICY_CHANGED = "policy_changed"
    RIGHT_REFUSED = "right_refused"
    EVALUATION_DELETED = "evaluation_deleted"


SECURITY_EVENT_TEXTS: Final[Mapping[SecurityEventKind, str]] = {
    SecurityEventKind.SIGNED_IN: "Signed in with password",
    SecurityEventKind.SIGNED_IN_BY_LINK: "Signed in with a link",
    SecurityEventKind.SIGN_IN_FAILED: "Sign-in failed",
    SecurityEventKind.PASSWORD_REFUSED: "Wrong current password",
    SecurityEventKind.THROTTLED: "Throttled: too many tries",
    SecurityEventKind.PASSWORD_SET: "Password set",
    SecurityEventKind.SESSIONS_ENDED: "Sessions ended",
    SecurityEventKind.TOKENS_REVOKED: "API tokens revoked",
    SecurityEventKind.TOKEN_MADE: "API token created",
    SecurityEventKind.TOKEN_NEW_ADDRESS: "API token used from a new address",
    SecurityEventKind.LINK_MADE: "Sign-in link created",
    SecurityEventKind.JOIN_LINK_MADE: "Join link created",
    SecurityEventKind.JOIN_LINK_REVOKED: "Join link revoked",
    SecurityEventKind.JOINED_BY_LINK: "Joined with a join link",
    SecurityEventKind.ACCOUNT_DISABLED: "Account disabled",
    SecurityEventKind.ACCOUNT_ENABLED: "Account enabled",
    SecurityEventKind.POLICY_CHANGED: "Rights changed",
    SecurityEventKind.RIGHT_REFUSED: "Refused: missing right",
    SecurityEventKind.EVALUATION_DELETED: "Evaluation deleted",
}
