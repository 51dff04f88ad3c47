"""What a network's members are told about tracing: where spans go, and which messages are sampled.

The decision is made once, where a message is published; whoever passes it on only follows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Tracing:
    """Part of a member's options; the defaults sample nothing that is not forced."""

    #: The base address of an OTLP/HTTP collector; without one, spans stay in each host's ring.
    endpoint: str = ""
    #: The share of publications and subscriptions that are sampled; per namespace, or else.
    ratio: float = 0.0
    ratios: Mapping[str, float] = field(default_factory=dict)
    #: Seconds between two exports of metrics.
    metrics_period: float = 5.0

    def __post_init__(self) -> None:
        for name, ratio in {"every namespace": self.ratio, **self.ratios}.items():
            if not 0.0 <= ratio <= 1.0:
                raise ValueError(f"the sampling ratio of {name} is {ratio}, not between 0 and 1")

    def ratio_of(self, namespace: str) -> float:
        """The share of a namespace's messages to be sampled."""
        return self.ratios.get(namespace, self.ratio)


def endpoint_from_environment() -> str:
    """Where OTEL_EXPORTER_OTLP_ENDPOINT points, or nothing."""
    return os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").rstrip("/")
