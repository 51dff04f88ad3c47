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
  try {
    const form = await until(() => document.getElementById("search"));
    await until(() => form.elements.service.options.length > 3);
    form.elements.operation.value = "submit";
    form.requestSubmit();
    (await until(() => document.querySelector(".hit"))).click();
    await until(() => document.querySelectorAll(".bar").length > 2);
    document.querySelector(".label").click();
    await until(() => document.querySelector("pre"));
    const bars = document.querySelectorAll(".bar").length;
    document.title = `bars ${bars} hits ${document.querySelectorAll(".hit").length}`;
  } catch (error) { document.title = "failed: " + error.message; }
})();
"""


def browse(url: str, folder: Path, *options: str) -> str:
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,700"),
        *(f"--user-data-dir={folder}", "--virtual-time-budget=15000", *options, url),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH (Debian: chromium)")
def test_the_page_finds_traces_and_draws_them(network, tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    original = Path(server_module.__file__).with_name("page.html").read_text()
    page.write_text(original.replace("</html>", f"<script>{SCRIPT}</script></html>"))
    monkeypatch.setattr("actors.telemetry.server._PAGE", page)
    with CollectorServer() as server:
        made = network(TREE, [ROOT], config=CALM, options=HostOptions(tracing=Tracing(server.url)))
        world = TracedWorld(made, 5)
        world.publish(12)
        until(lambda: server.collector.spans >= world.spans_due(), "all spans")
        dumped = browse(server.url, tmp_path / "profile", "--dump-dom")
        title = dumped.partition("<title>")[2].partition("</title>")[0]
        newest = server.collector.search(operation="submit")
        assert title == f"bars {newest[0]['spans']} hits {len(newest)}"
        picture = tmp_path / "page.png"
        browse(server.url, tmp_path / "profile", f"--screenshot={picture}")
        assert picture.stat().st_size > 10_000
