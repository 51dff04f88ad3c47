"""A host in a process of its own, which a test stops and continues; ends when stdin does."""

from __future__ import annotations

import sys

from actors.host import HostOptions
from actors.link import Kind, LinkOptions
from actors.member import Plan

options = HostOptions(link=LinkOptions(heartbeat=0.1, timeout=0.4))
host = Plan("child", next_hop={"r0": "r1"}, options=options).host(1).start()
print(host.attach("r1", sys.argv[1], b"", Kind.ROUTER).endpoint, flush=True)
sys.stdin.read()
host.stop()
