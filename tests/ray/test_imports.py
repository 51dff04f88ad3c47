"""What a router's process loads, and what Ray says to our configuration; no Ray is started."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HEAVY = {
    "pyspark",
    "matplotlib",
    "networkx",
    "typer",
    "rich",
    "pyarrow",
    "pandas",
    "topology",
    "sqlite3",
}
PROGRAM = """
import json, sys
import ray
before = set(sys.modules)
import actors.remote
print(json.dumps(sorted({name.split(".")[0] for name in set(sys.modules) - before})))
"""


def test_a_router_loads_neither_plotting_nor_web_nor_spark() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(ran.stdout))
    assert {"actors", "routing", "zmq"} <= loaded
    assert not loaded & HEAVY


def test_ray_accepts_the_configuration_for_many_machines() -> None:
    import yaml
    from ray.autoscaler._private.util import prepare_config, validate_config

    path = Path(__file__).parents[2] / "ray_cluster.yaml"
    config = prepare_config(yaml.safe_load(path.read_text()))
    validate_config(config)
    assert config["provider"]["type"] == "local"
    assert config["max_workers"] == len(config["provider"]["worker_ips"])
