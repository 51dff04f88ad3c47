"""Content-list forwarding (Kulik 2004, section 3.4.3, Figures 3-7 and 3-8).

A notification's header lists every node that covers it, and never changes; routers know which
neighbour wants which node, and nothing of the graph.
"""

from __future__ import annotations

from routing.flat import FlatTable
from routing.registry import register
from routing.router import TreeRouter


class ContentListRouter(TreeRouter):
    """A router without graphs."""

    table = FlatTable


register("content-list", ContentListRouter)
