"""Opens the pages of the website in a headless Chromium, for ``tools/website.py --look``.

It looks for errors in the console, searches, and writes pictures. Chromium is driven over a pair of pipes with the
DevTools protocol (``--remote-debugging-pipe``): nothing else is needed. The pages are opened from the folder
(``file://``), without a server.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import website

BROWSERS = ["chromium", "chromium-browser", "google-chrome"]
WIDE, PHONE = (1400, 1000), (390, 844)
#: The pages of which pictures are written.
SHOWN = [
    "index", "first/index", "first/training", "first/model", "guides/compile", "reference/index", "reference/nn/Linear",
    "reference/taeda/index", "reference/taeda/exp", "features", "measurements/speed", "gallery/index",
]  # fmt: skip
SEARCHES = {"kaiser_window": "kaiser_window", "AdamW": "AdamW", "mixed precision": "mixed_precision"}


class Browser:
    """A page in a browser. Errors of the page are collected in ``errors``."""

    def __init__(self) -> None:
        program = next((p for name in BROWSERS if (p := shutil.which(name))), None)
        if program is None:
            raise SystemExit(f"no browser: looked for {', '.join(BROWSERS)}")
        self.profile = tempfile.mkdtemp()
        theirs_in, self.write = os.pipe()
        self.read, theirs_out = os.pipe()

        def connect() -> None:  # Chromium reads from descriptor 3 and writes to 4
            first, second = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile}", "about:blank"],
            preexec_fn=connect, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self.buffer, self.count, self.session = b"", 0, None
        self.errors: list[str] = []
        self.events: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def message(self) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            part = os.read(self.read, 1 << 16)
            if not part:
                raise RuntimeError("the browser has ended")
            self.buffer += part
        text, _, self.buffer = self.buffer.partition(b"\0")
        found = json.loads(text)
        method, given = found.get("method"), found.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = given["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "assert"):
            self.errors.append(" ".join(str(a.get("value", a.get("description"))) for a in given["args"]))
        elif method == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.errors.append(f"{given['entry']['text']} {given['entry'].get('url', '')}")
        if method:
            self.events.append(method)
        return found

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol, and wait for its result."""
        self.count += 1
        request = {"id": self.count, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.write, json.dumps(request).encode() + b"\0")
        while (found := self.message()).get("id") != self.count:
            pass
        if "error" in found:
            raise RuntimeError(f"{method}: {found['error']}")
        return found["result"]

    def open(self, address: str) -> list[str]:
        """Load a page to the end. The errors it gave."""
        self.errors, self.events = [], []
        if error := self.ask("Page.navigate", url=address).get("errorText"):
            return [error]
        while "Page.loadEventFired" not in self.events:
            self.message()
        return self.errors

    def value(self, expression: str) -> Any:
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def wait(self, expression: str, seconds: float = 20) -> Any:
        """The value of an expression, once it is true, or after some time."""
        end = time.monotonic() + seconds
        while not (found := self.value(expression)) and time.monotonic() < end:
            time.sleep(0.1)
        return found

    def size(self, width: int, height: int) -> None:
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def picture(self, path: Path) -> None:
        data = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=False)["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        self.session = None
        self.ask("Browser.close")
        self.process.wait(30)
        shutil.rmtree(self.profile, ignore_errors=True)


def look(folder: Path, shots: Path | None) -> int:
    """Open every page, search, and look at some in both themes and widths. 0 if nothing is wrong."""
    browser = Browser()
    wrong: list[str] = []
    try:
        pages = website.built(folder)
        for path in pages:
            found = browser.open(path.as_uri())
            wrong += [f"{path.relative_to(folder)}: {error}" for error in found]
        print(f"{len(pages)} pages opened, {len(wrong)} errors")
        wrong += searches(browser, folder)
        wrong += appearance(browser, folder, shots)
    finally:
        browser.close()
    print("\n".join(wrong[:50]))
    return int(bool(wrong))


def searches(browser: Browser, folder: Path) -> list[str]:
    """What the search does not find, of what it should."""
    wrong = []
    for words, page in SEARCHES.items():
        errors = browser.open((folder / "search.html").as_uri() + "?q=" + words.replace(" ", "+"))
        browser.wait("document.querySelectorAll('#search-results li a').length")
        links = (
            browser.value("[...document.querySelectorAll('#search-results li a')].map(a => a.getAttribute('href'))")
            or []
        )
        print(f"search for {words!r}: {len(links)} found, first {links[:1]}")
        if not any(page in link for link in links[:5]):
            wrong.append(f"search for {words!r}: {page} is not among the first five: {links[:5]} {errors}")
    return wrong


def appearance(browser: Browser, folder: Path, shots: Path | None) -> list[str]:
    """Pages that are wider than the window, or whose theme does not change the background."""
    wrong = []
    for name in SHOWN:
        if not (folder / f"{name}.html").exists():
            continue
        backgrounds = set()
        for theme in ("light", "dark"):
            for kind, size in (("wide", WIDE), ("phone", PHONE)):
                browser.size(*size)
                browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
                browser.open((folder / f"{name}.html").as_uri())
                over = browser.value("document.documentElement.scrollWidth - window.innerWidth")
                if over > 0:
                    wrong.append(f"{name}, {kind}: {over} pixels wider than the window")
                backgrounds.add(browser.value("getComputedStyle(document.body).backgroundColor"))
                if shots is not None:
                    shots.mkdir(parents=True, exist_ok=True)
                    browser.picture(shots / f"{name.replace('/', '_')}-{theme}-{kind}.png")
        if len(backgrounds) != 2:
            wrong.append(f"{name}: the same background in both themes: {backgrounds}")
    return wrong
