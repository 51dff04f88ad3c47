"""Pure protocol state machines: no clock, socket, thread, file or global randomness."""
