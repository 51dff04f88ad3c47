"""The two ways in which making or reading a workload ends badly."""

from __future__ import annotations


class ScenarioError(ValueError):
    """What was asked for makes no sense: an unknown key, an impossible value, a used output."""


class WorkloadError(RuntimeError):
    """What was asked for is sound but did not come about, or what was read is damaged."""
