"""A browser to drive: Debian's chromium through chromedriver's WebDriver protocol, over httpx.

Nothing is downloaded, and the browser is told to talk to nobody but the page.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

__all__ = ["KEYS", "Browser", "browsing", "missing_programs"]

MISSING = "The browser tests need chromium and its driver: apt-get install chromium chromium-driver"
KEYS = {
    "Tab": "\ue004",
    "Enter": "\ue007",
    "Shift": "\ue008",
    "Control": "\ue009",
    "Escape": "\ue00c",
    "Left": "\ue012",
    "Up": "\ue013",
    "Right": "\ue014",
    "Down": "\ue015",
}
FLAGS = """--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run
 --disable-background-networking --disable-component-update --disable-sync
 --disable-default-apps --disable-extensions --disable-dev-shm-usage --hide-scrollbars
 --force-color-profile=srgb""".split()
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_PATIENCE = 120.0  # seconds until what is waited for is missed; loops may be compiled first


def missing_programs() -> str | None:
    """A sentence that says what to install, or None where all is there."""
    return None if all(map(shutil.which, ("chromium", "chromedriver"))) else MISSING


class Browser:
    """One window; elements are named by CSS selectors."""

    def __init__(self, client: httpx.Client, session: str) -> None:
        self._client = client
        self._session = session

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """One command of the WebDriver protocol."""
        given = {} if method == "POST" and body is None else body
        answer = self._client.request(method, f"/session/{self._session}{path}", json=given)
        value = answer.json()["value"]
        if answer.is_error:
            raise AssertionError(f"{value['error']}: {value['message'].splitlines()[0]}")
        return value

    def devtools(self, command: str, **parameters: Any) -> Any:
        """One command of the DevTools protocol."""
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, url: str) -> None:
        self.call("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        """The value of a script's ``return``."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def all(self, selector: str) -> list[str]:
        """The texts of all elements that can be seen, as a person sees them."""
        return self.run(
            "return [...document.querySelectorAll(arguments[0])]"
            ".filter((e) => e.checkVisibility()).map((e) => e.innerText.trim())",
            selector,
        )

    def text(self, selector: str) -> str:
        """The text of the one element that can be seen, or nothing."""
        found = self.all(selector)
        assert len(found) <= 1, f"{selector} is there {len(found)} times"
        return found[0] if found else ""

    def wait(self, what: str, *arguments: Any, patience: float = _PATIENCE) -> Any:
        """Until an expression of the page is true; its value."""
        deadline = time.monotonic() + patience
        while not (value := self.run(f"return {what}", *arguments)):
            assert time.monotonic() < deadline, f"never true: {what} {arguments}"
            time.sleep(0.05)
        return value

    def wait_text(self, selector: str, part: str) -> None:
        """Until some element that can be seen holds a text."""
        self.wait(
            "[...document.querySelectorAll(arguments[0])]"
            ".some((e) => e.checkVisibility() && e.innerText.includes(arguments[1]))",
            selector,
            part,
        )

    def element(self, selector: str) -> str:
        return str(
            self.call("POST", "/element", {"using": "css selector", "value": selector})[_ELEMENT]
        )

    def click(self, selector: str) -> None:
        self.call("POST", f"/element/{self.element(selector)}/click")

    def type(self, selector: str, text: str) -> None:
        self.call("POST", f"/element/{self.element(selector)}/value", {"text": text})

    def clear(self, selector: str) -> None:
        self.call("POST", f"/element/{self.element(selector)}/clear")

    def press(self, *keys: str, holding: str | None = None) -> None:
        """Press keys wherever the focus is; names of `KEYS`, or characters."""
        held = [] if holding is None else [KEYS[holding]]
        actions = [{"type": "keyDown", "value": key} for key in held]
        for key in keys:
            value = KEYS.get(key, key)
            actions += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        actions += [{"type": "keyUp", "value": key} for key in held]
        source = {"type": "key", "id": "keys", "actions": actions}
        self.call("POST", "/actions", {"actions": [source]})

    def write(self, text: str) -> None:
        """Type characters wherever the focus is."""
        self.press(*text)

    def tab_to(self, selector: str, most: int = 60) -> None:
        """Press Tab until the focus is on an element."""
        for _ in range(most):
            if self.run("return document.activeElement?.matches(arguments[0])", selector):
                return
            self.press("Tab")
        raise AssertionError(f"the Tab key does not lead to {selector}")

    def wheel(self, selector: str, dy: int) -> None:
        """Turn the wheel over the middle of an element."""
        origin = {_ELEMENT: self.element(selector)}
        scroll = {"type": "scroll", "x": 0, "y": 0, "deltaX": 0, "deltaY": dy, "origin": origin}
        source = {"type": "wheel", "id": "wheel", "actions": [scroll]}
        self.call("POST", "/actions", {"actions": [source]})

    def point(self, selector: str, x: int, y: int, *, click: bool = False) -> None:
        """Move the pointer to a spot, counted from the element's middle."""
        origin = {_ELEMENT: self.element(selector)}
        steps: list[dict[str, Any]] = [{"type": "pointerMove", "x": x, "y": y, "origin": origin}]
        if click:
            steps += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.call("POST", "/actions", {"actions": [_mouse(steps)]})

    def drag(self, selector: str, dx: int, dy: int) -> None:
        """Drag from an element's middle."""
        origin = {_ELEMENT: self.element(selector)}
        steps = [
            {"type": "pointerMove", "x": 0, "y": 0, "origin": origin},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "x": dx, "y": dy, "origin": "pointer", "duration": 50},
            {"type": "pointerUp", "button": 0},
        ]
        self.call("POST", "/actions", {"actions": [_mouse(steps)]})

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )

    def prefer(self, **features: str) -> None:
        """Such as ``prefers_color_scheme="dark"``."""
        wanted = [{"name": k.replace("_", "-"), "value": v} for k, v in features.items()]
        self.devtools("Emulation.setEmulatedMedia", features=wanted)

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))

    def console(self) -> list[str]:
        """What the page's console said since it was last asked: warnings and worse."""
        entries = self.call("POST", "/se/log", {"type": "browser"})
        return [each["message"] for each in entries if each["level"] in ("WARNING", "SEVERE")]

    def hosts(self) -> set[str]:
        """Who was asked for anything since this was last asked."""
        entries = self.call("POST", "/se/log", {"type": "performance"})
        found = set()
        for entry in entries:
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = urlsplit(message["params"]["request"]["url"])
                if url.scheme in ("http", "https", "ws", "wss"):  # not the browser's own pages
                    found.add(url.netloc)
        return found


def _mouse(steps: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "type": "pointer",
        "id": "mouse",
        "parameters": {"pointerType": "mouse"},
        "actions": steps,
    }


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """A browser with a new profile in `folder`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = shutil.which("chromedriver")
    assert program, MISSING
    driver = subprocess.Popen(
        [program, f"--port={port}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
    )
    options = {
        "binary": shutil.which("chromium"),
        "args": [*FLAGS, f"--user-data-dir={folder / 'profile'}"],
    }
    wanted = {
        "browserName": "chrome",
        "goog:chromeOptions": options,
        "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
    }
    try:
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False
        ) as client:
            _wait_for(client)
            answer = client.post("/session", json={"capabilities": {"alwaysMatch": wanted}}).json()
            assert "sessionId" in answer["value"], answer["value"].get("message")
            browser = Browser(client, answer["value"]["sessionId"])
            try:
                yield browser
            finally:
                browser.call("DELETE", "")
    finally:
        driver.terminate()
        driver.wait(20)


def _wait_for(client: httpx.Client) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            if client.get("/status").json()["value"]["ready"]:
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline, "chromedriver did not start"
        time.sleep(0.05)
