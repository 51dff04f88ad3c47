"""A network of four routers, two subscribers and a publisher: copy, and change.

python examples/quickstart.py
"""

from __future__ import annotations

import sys

import f3

#: The content graph: a node covers what its children cover.
NEWS, SPORT, BASEBALL, WEATHER = 1, 2, 3, 4
GRAPH = [(NEWS, ()), (SPORT, (NEWS,)), (BASEBALL, (SPORT,)), (WEATHER, (NEWS,))]


def tell(text: str) -> None:
    """Progress."""
    print(text, file=sys.stderr)


def read(note: f3.Notification) -> None:
    """What a subscriber does with a notification."""
    print("everything:", note.body.decode())


def main() -> None:
    """Start a cluster on this machine, use it, and stop it."""
    topology = f3.topology("chain:4")  # r0 - r1 - r2 - r3
    with f3.Cluster(topology, rendezvous=["r0"], progress=tell) as cluster:
        cluster.load_graph("r0", GRAPH)
        with cluster.client("r3") as readers, cluster.client("r1") as press:
            # By callback: in the client's thread, so it should be quick.
            everything = readers.subscriber("everything", on_notification=read)
            # By iteration, or one by one.
            sport = readers.subscriber("sport")
            everything.subscribe("r0", NEWS)
            sport.subscribe("r0", SPORT)  # in force when it returns

            publisher = press.publisher("press")
            publisher.publish("r0", [WEATHER], b"rain at six")  # in the log when it returns
            publisher.publish("r0", [BASEBALL], b"home wins in the ninth")
            print("sport:", sport.get(timeout=10).body.decode())

            try:
                sport.subscribe("r0", 99)
            except f3.RefusedError as error:
                print("refused:", error)


if __name__ == "__main__":
    main()
