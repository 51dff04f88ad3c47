"""Builds the compiled forwarding table where there is a C++ compiler; pyproject.toml has the rest.

Without a compiler, or where compiling fails, the installation goes on without the table:
`routing.native` then says so and routers use the Python one (docs/fast-path.md).
"""

from __future__ import annotations

from pathlib import Path

import nanobind
from setuptools import Extension, setup

_NANOBIND = Path(nanobind.include_dir()).parent

setup(
    ext_modules=[
        Extension(
            "routing._native",
            sorted(str(path) for path in Path("native").glob("*.cpp")),
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
            depends=sorted(str(path) for path in Path("native").glob("*.hpp")),
            language="c++",
            optional=True,
        )
    ]
)
