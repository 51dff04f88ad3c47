"""The Ray runtime: router hosts, links, cluster and clients."""
