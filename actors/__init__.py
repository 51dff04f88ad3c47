"""The live runtime: the routers that the simulator runs, as processes on real links."""
