# SPDX-License-Identifier: MIT
"""The site of the documents: built, its links followed, and looked at in a browser, wide and narrow, light and dark.

It does not depend on the compiler, so it runs once.
"""

from __future__ import annotations

import functools
import http.server
import json
import queue
import re
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tools"
pytestmark = [pytest.mark.everything, pytest.mark.xdist_group("site")]  # built in one folder
PAGES = ("index.html", "docs/start/c.html", "docs/guide/operating.html", "docs/reference/c/boxroot.h.html",
         "docs/reference/ocaml/Outheap_region.html", "rust/ocaml-boxroot/guide/rooting.html",
         "docs/internals/invariants.html", "docs/decisions/0004-deletions-wait-for-the-marker.html")  # fmt: skip

# Loads each page in a frame of the given width, and says how much wider its contents are, and the least contrast of
# text to its background; then searches.
LOOK = """<!doctype html><meta charset="utf-8"><body><script>
const wanted = WANTED, found = {pages: [], search: []};
const wait = ms => new Promise(done => setTimeout(done, ms));
const channel = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const numbers = text => (text.match(/[\\d.]+/g) || []).map(Number);
function behind(element) {
  for (let e = element; e; e = e.parentElement) {
    const c = numbers(e.ownerDocument.defaultView.getComputedStyle(e).backgroundColor);
    if (c.length == 3 || c[3] > 0.9) return c;
  }
  return [255, 255, 255];
}
function contrast(element) {
  const style = element.ownerDocument.defaultView.getComputedStyle(element), back = behind(element);
  const ink = numbers(style.color), part = ink.length > 3 ? ink[3] : 1;
  const mixed = [0, 1, 2].map(i => ink[i] * part + back[i] * (1 - part));
  const [a, b] = [light(mixed), light(back)].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}
async function open(page, width, scheme) {
  const frame = document.createElement('iframe');
  frame.style = `width: ${width}px; height: 900px; border: 0`;
  frame.src = page;
  const loaded = new Promise(done => frame.onload = done);
  document.body.replaceChildren(frame);
  await loaded;
  /* Colours change at once, and the page's own script, which sets them too, has had its turn. */
  const body = frame.contentDocument.body, style = frame.contentDocument.createElement('style');
  style.textContent = '*, *::before, *::after { transition: none !important; animation: none !important }';
  frame.contentDocument.head.append(style);
  for (let same = 0; same < 4; await wait(50)) {
    same = body.getAttribute('data-md-color-scheme') == scheme ? same + 1 : 0;
    body.setAttribute('data-md-color-scheme', scheme);
  }
  return frame;
}
(async () => {
  for (const page of wanted.pages) for (const width of [390, 1400]) for (const scheme of ['default', 'slate']) {
    const document_ = (await open(page, width, scheme)).contentDocument;
    const texts = [...document_.querySelectorAll('article p, article li, article td, article h1, article h2')];
    const worst = Math.min(...texts.filter(e => e.textContent.trim()).slice(0, 80).map(contrast));
    found.pages.push({page, width, scheme, texts: texts.length, contrast: worst,
      over: document_.documentElement.scrollWidth - document_.documentElement.clientWidth});
  }
  const frame = await open('index.html', 1400, 'default'), view = frame.contentDocument;
  const toggle = view.getElementById('__search'), input = view.querySelector('.md-search__input');
  toggle.checked = true;
  toggle.dispatchEvent(new Event('change'));
  input.focus();
  input.value = wanted.search;
  for (const kind of ['input', 'keyup']) input.dispatchEvent(new Event(kind, {bubbles: true}));
  for (let i = 0; i < 100 && !found.search.length; i++) {
    await wait(100);
    found.search = [...view.querySelectorAll('.md-search-result__link')].map(a => a.getAttribute('href'));
  }
  await fetch('found', {method: 'POST', body: JSON.stringify(found)});
})();
</script>"""


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder on a port of its own; what is posted is kept."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
        self.posted: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.SimpleHTTPRequestHandler):
    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.send_response(204)
        self.end_headers()
        self.server.posted.put(text)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Path:
    """Built as `make docs` does, without rustdoc, which the tests of the crates look at."""
    done = subprocess.run([TOOLS / "docs", "--no-rust"], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return Path(done.stdout.strip().split("\n")[-1]).parent


def test_site_is_built_and_links_lead_somewhere(site: Path) -> None:
    for page in PAGES:
        assert (site / page).exists(), page
    assert len(list(site.rglob("*.html"))) > 80


def test_no_markup_is_left(site: Path) -> None:
    for page in [*site.glob("docs/**/*.html"), *site.glob("rust/**/*.html")]:
        article = re.search(r"<article.*</article>", page.read_text(), re.S)
        assert article and "```" not in article[0], page
        plain = re.sub(r"<(pre|code)\b.*?</\1>", "", article[0], flags=re.S)
        assert not re.search(r"\]\(|^\|", plain, re.M), page


def test_the_guide_of_rust_is_read_without_rustdoc(site: Path) -> None:
    front = (site / "index.html").read_text()
    written = sorted((ROOT / "rust/ocaml-boxroot/guide").glob("*.md"))
    assert len(written) > 5
    for source in written:
        name = f"rust/ocaml-boxroot/guide/{source.stem}.html"
        article = re.search(r"<article.*</article>", (site / name).read_text(), re.S)
        plain = re.sub(r"<[^>]*>", "", article[0])
        assert name in front and not re.search(r"crate::|^# use", plain, re.M), name


def test_reference_has_the_public_functions(site: Path) -> None:
    header = (ROOT / "boxroot/include/boxroot.h").read_text()
    page = (site / "docs/reference/c/boxroot.h.html").read_text()
    names = set(re.findall(r"\b(boxroot_[a-z_]+)\([^;{]*\) BXR_LINK_NAME", header))
    assert len(names) > 10
    for name in names:
        assert re.search(rf"<h2[^>]*>[^<]*\b{name}\b", page), name


def test_site_in_a_browser(site: Path, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        subprocess.run([TOOLS / "need", "chromium", "chromium"], capture_output=True, check=False)
        browser = shutil.which("chromium") or pytest.skip("no chromium here")
    look = site / "look.html"
    look.write_text(LOOK.replace("WANTED", json.dumps({"pages": PAGES, "search": "boxroot_create"})))
    server = Server(site)
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1500,1000", "--remote-debugging-port=0"]
    address = f"http://127.0.0.1:{server.server_port}/look.html"
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [browser, *words, f"--user-data-dir={tmp_path / 'profile'}", address], stdout=log, stderr=log
        )
        try:
            found = json.loads(server.posted.get(timeout=300))
        except queue.Empty:
            pytest.fail((tmp_path / "log").read_text()[-2000:])
        finally:
            process.terminate()
            process.wait()
            server.shutdown()
            look.unlink()
    assert len(found["pages"]) == 4 * len(PAGES)
    for page in found["pages"]:
        assert page["texts"] > 5 and page["over"] <= 0 and page["contrast"] >= 4.5, page
    assert any("boxroot" in link for link in found["search"]), found["search"]
