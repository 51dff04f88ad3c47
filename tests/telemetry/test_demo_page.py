"""`f3 demo --ui` as its user sees it: a page with traces of the run that was checked."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from urllib.request import urlopen

import pytest
from test_page import CHROMIUM, browse

pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.spark]

SECONDS = 240
PUBLICATIONS = 20


def get(url: str):
    with urlopen(url, timeout=10) as reply:
        return json.load(reply)


@pytest.fixture
def demo():
    """The demonstration, once it has printed where its page is; the address."""
    made = ["demo", "--ui", "--sample", "1", "--subscribers", "300", "--json"]
    program = [sys.executable, "-c", "from f3.cli import main; main()"]
    command = [*program, *made, "--publications", str(PUBLICATIONS)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    deadline = threading.Timer(SECONDS, process.kill)
    deadline.start()
    try:
        for line in process.stderr:
            if line.startswith("traces: "):
                yield line.split()[1]
                break
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=30)
        assert process.returncode == 0
        assert json.loads(told)["wrong_subscribers"] == 0
    finally:
        deadline.cancel()
        process.kill()
        process.communicate()


def test_the_demonstration_leaves_a_page_with_the_trace_of_every_publication(demo, tmp_path):
    hits = get(f"{demo}/api/traces?operation=publish&limit=1000")
    assert len(hits) == PUBLICATIONS
    for hit in hits:
        spans = get(f"{demo}/api/traces/{hit['trace']}")
        known = {span["span"] for span in spans}
        roots = [span for span in spans if not span["parent"]]
        assert [root["name"].partition(" ")[0] for root in roots] == ["publish"]
        assert all(span["parent"] in known for span in spans if span["parent"])
    assert get(f"{demo}/api/status")["dropped"] == 0
    if CHROMIUM is not None:
        dumped = browse(demo, tmp_path, "--dump-dom")
        assert dumped.count('class="hit"') == min(100, len(get(f"{demo}/api/traces?limit=100")))
