"""The page in a real browser: search, choose, look at the waterfall."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from traced_world import CALM, ROOT, TREE, TracedWorld, until

from actors.host import HostOptions
from actors.telemetry import server as server_module
from actors.telemetry.options import Tracing
from actors.telemetry.server import CollectorServer

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH (Debian: chromium)")

#: What a user would do, and what must be there then: told by the page's title.
SCRIPT = """
(async () => {
  const until = async (look) => {
    for (let n = 0; n < 200; n++) {
      if (look()) return look();
      await new Promise((next) => setTimeout(next, 25));
    }
    throw new Error("not there: " + look);
  };
  const form = document.getElementById("search");
  const find = (field, value) => { form.elements[field].value = value; form.requestSubmit(); };
  const hits = document.getElementById("hits");
  try { document.title = await (async () => { STEPS })(); }
  catch (error) { document.title = "failed: " + error.message; }
})();
"""
CHOOSE = """
    await until(() => form.elements.service.options.length > 3);
    find("operation", "submit");
    (await until(() => document.querySelector(".hit"))).click();
    await until(() => document.querySelectorAll(".bar").length > 2);
    document.querySelector(".label").click();
    await until(() => document.querySelector("pre"));
    const bars = document.querySelectorAll(".bar").length;
    return `bars ${bars} hits ${document.querySelectorAll(".hit").length}`;
"""
NOTHING = """
    await until(() => hits.textContent.startsWith("No traces yet."));
    find("min_us", "abc");
    await until(() => hits.textContent === "min_us must be a number, not 'abc'");
    show("00");
    await until(() => document.querySelector("#trace .trouble"));
    window.fetch = () => Promise.reject(new TypeError("gone"));
    await showStatus();
    return document.querySelector("header .trouble").textContent;
"""


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Have the collector's page do something by itself."""
    original = Path(server_module.__file__).with_name("page.html").read_text()

    def act(steps: str) -> None:
        script = SCRIPT.replace("STEPS", steps)
        changed = tmp_path / "page.html"
        changed.write_text(original.replace("</html>", f"<script>{script}</script></html>"))
        monkeypatch.setattr("actors.telemetry.server._PAGE", changed)

    return act


def browse(url: str, folder: Path, *options: str) -> str:
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,700"),
        *(f"--user-data-dir={folder}", "--virtual-time-budget=15000", *options, url),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def title_of(url: str, folder: Path) -> str:
    dumped = browse(url, folder, "--dump-dom")
    return dumped.partition("<title>")[2].partition("</title>")[0]


def test_the_page_finds_traces_and_draws_them(network, tmp_path, page):
    page(CHOOSE)
    with CollectorServer() as server:
        made = network(TREE, [ROOT], config=CALM, options=HostOptions(tracing=Tracing(server.url)))
        world = TracedWorld(made, 5)
        world.publish(12)
        until(lambda: server.collector.spans >= world.spans_due(), "all spans")
        title = title_of(server.url, tmp_path / "profile")
        newest = server.collector.search(operation="submit")
        assert title == f"bars {newest[0]['spans']} hits {len(newest)}"
        picture = tmp_path / "page.png"
        browse(server.url, tmp_path / "profile", f"--screenshot={picture}")
        assert picture.stat().st_size > 10_000


def test_the_page_says_what_is_wrong(tmp_path, page):
    """Nothing there yet, a question that makes no sense, a trace that is gone, no collector."""
    page(NOTHING)
    with CollectorServer() as server:
        told = title_of(server.url, tmp_path / "profile")
    assert told == "The collector does not answer: is the network still up?"
