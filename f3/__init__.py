"""The front door: the public Python API and the `f3` command line."""
