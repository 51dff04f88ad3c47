"""The virtual-time runtime: the same routers, FIFO links, seeded faults and the oracle."""
