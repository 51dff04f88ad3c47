"""From what applications say to content-graph node IDs: languages, indexes, preprocessors."""
