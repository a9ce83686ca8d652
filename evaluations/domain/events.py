"""The verbs of Events that decide something later."""

from typing import Final

SAW_VERDICTS: Final = "saw verdicts"  # a review made after it is not blind
DOWNLOADED: Final = "downloaded"  # an export: the same, for every comparison
MADE_ACCOUNT: Final = "made account"  # for an evaluation: its owners may make its links
