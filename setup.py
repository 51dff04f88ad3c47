"""Builds the compiled parts where there is a C++ compiler; pyproject.toml has the rest.

`routing._native` is the forwarding table; without a compiler, or where compiling fails, the
installation goes on without it: `routing.native` then says so and routers use the Python one
(docs/fast-path.md). `experiments._opponents` is what the studies time that table against.
"""

from __future__ import annotations

from pathlib import Path

import nanobind
from setuptools import Extension, setup

_NANOBIND = Path(nanobind.include_dir()).parent


def _compiled(module: str, folder: str) -> Extension:
    """An extension module of all sources in a folder, which may fail to build."""
    return Extension(
        module,
        sorted(str(path) for path in Path(folder).glob("*.cpp")),
        include_dirs=[
            str(_NANOBIND / "include"),
            str(_NANOBIND / "src"),
            str(_NANOBIND / "ext" / "robin_map" / "include"),
        ],
        define_macros=[("NDEBUG", None), ("NB_COMPACT_ASSERTIONS", None)],
        extra_compile_args=[
            "-std=c++17",
            "-O3",
            "-fvisibility=hidden",
            "-fno-strict-aliasing",
            "-ffunction-sections",
            "-fdata-sections",
            "-g0",
        ],
        extra_link_args=["-Wl,--gc-sections", "-Wl,-s"],
        depends=sorted(str(path) for path in Path(folder).glob("*.hpp")),
        language="c++",
        optional=True,
    )


setup(
    ext_modules=[
        _compiled("routing._native", "native"),
        _compiled("experiments._opponents", "experiments/native"),
    ]
)
