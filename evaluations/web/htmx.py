"""The status that tells htmx to stop polling."""

STOP_POLLING = 286  # htmx's own: swap once more, then ask no more
