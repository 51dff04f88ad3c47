"""F3: content graphs with output labels (Kulik 2004, sections 3.4.3 to 3.4.9).

Routers hold the part of the content graph that they are subscribed to. What a notification's
header becomes for each neighbour is worked out when subscriptions change, and looked up when
notifications pass.
"""

from __future__ import annotations

from routing.registry import register
from routing.router import TreeRouter
from routing.table import LabelTable


class F3Router(TreeRouter):
    """A router that forwards by output labels."""

    table = LabelTable


register("f3", F3Router)
