"""The process of a router under test: a RouterHost as a cluster runs it, without Ray around it."""

from __future__ import annotations

import sys

from actors.link import Kind
from actors.member import Plan
from f3.bench.children import Answer, Master

UPSTREAM = "source"


class RouterProcess:
    """The router, told what to do."""

    def __init__(self) -> None:
        plan = Plan("router", next_hop={UPSTREAM: UPSTREAM})
        self._host = plan.host(incarnation=1).start()

    def attach(self, neighbor: str, endpoint: str) -> Answer:
        """Link up with a neighbour that listens there; where the router listens for it."""
        return {"endpoint": self._host.attach(neighbor, endpoint, b"", Kind.ROUTER).endpoint}

    def status(self) -> Answer:
        """What the host tells of itself."""
        return self._host.status(timeout=60.0)

    def stop(self) -> None:
        """End the host."""
        self._host.stop()


def main(fd: str) -> None:
    """Run a router that takes commands from there."""
    master, router = Master(int(fd)), RouterProcess()
    while master.serve(router):
        pass
    router.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
