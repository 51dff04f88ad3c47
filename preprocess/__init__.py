"""Application messages to content-graph node IDs: languages, graphs and matching indexes."""
