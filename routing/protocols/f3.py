"""F3: content graphs with output labels (Kulik 2004, sections 3.4.3 to 3.4.9).

Routers hold the part of the content graph that they are subscribed to. What a notification's
header becomes for each neighbour is worked out when subscriptions change, and looked up when
notifications pass.

`f3` takes the compiled table where it was built and the Python one otherwise; F3_TABLE=native or
F3_TABLE=python in the environment decides it. `f3-python` always takes the Python one.
"""

from __future__ import annotations

import os

from routing.registry import register
from routing.router import TreeRouter
from routing.table import LabelTable, Table


def choose_table(wish: str) -> type[Table]:
    """The table that is called "native" or "python"; the best there is for an empty wish."""
    if wish not in ("", "native", "python"):
        raise ValueError(f"F3_TABLE is {wish!r}: it can be native or python, or not be set")
    if wish == "python":
        return LabelTable
    try:
        from routing.native import NativeTable
    except ImportError as error:
        if wish:
            raise ImportError(
                f"F3_TABLE is native and the compiled table cannot be loaded ({error}); "
                "install again with a C++ compiler"
            ) from error
        return LabelTable
    return NativeTable


class F3Router(TreeRouter):
    """A router that forwards by output labels."""

    table = choose_table(os.environ.get("F3_TABLE", ""))


class PythonF3Router(TreeRouter):
    """The same with the readable table, to compare."""

    table = LabelTable


register("f3", F3Router)
register("f3-python", PythonF3Router)
