"""Names that both the export and the terminal use; without OpenTelemetry's packages."""

from __future__ import annotations

#: Keys of a link's status that count what was thrown away: the reason is in the name.
DROPS = (
    "notifications_dropped",
    "messages_unsent",
    "messages_oversized",
    "messages_cleared",
    "frames_bad",
)
