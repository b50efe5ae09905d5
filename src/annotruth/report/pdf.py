"""Pages as PDF: printed by a browser without a window or, where there is none, by WeasyPrint."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from annotruth.errors import InputError, OutputError, shorten
from annotruth.io.atomic import atomic_write

HTML = (".html", ".htm")
"""What the names of pages end in; others are those of PDF."""

MARK = b"% Made by annotruth\n"
"""The last line of a PDF of annotruth, a comment; a file that ends so may be replaced."""

MAX_SECONDS = 120.0
"""How long a browser may take."""

_BROWSERS = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    *("microsoft-edge", "msedge"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
# Time is simulated: the page's script has ended when the page is printed. No host is found.
_FLAGS = (
    *("--headless", "--disable-gpu", "--disable-extensions", "--disable-background-networking"),
    *("--disable-dev-shm-usage", "--no-first-run", "--no-default-browser-check"),
    *("--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=60000"),
    *("--no-pdf-header-footer", "--print-to-pdf-no-header", "--hide-scrollbars"),
)
_INSTALL = (
    "a PDF needs Chromium, Chrome or Edge on this machine, or WeasyPrint (`pip install "
    "annotruth[pdf]`): install one, or end the name in .html"
)


def check_pdf(path: str | Path, flag: str = "") -> None:
    """Raise an error unless the name is that of a PDF, and there is a program that prints it."""
    name = f"{flag} {path}".strip()
    if Path(path).suffix.lower() != ".pdf":
        raise InputError(f"{name}: a report is HTML or PDF: end the name in .html or .pdf")
    if find_browser() is None and not _has_weasyprint():
        raise InputError(f"{name}: {_INSTALL}")


def write_pdf(path: str | Path, html: Callable[[], str], plain: Callable[[], str]) -> None:
    """Write a page as PDF, completely or not at all.

    ``html``: the page as a browser shows it.
    ``plain``: the page without scripts, with the first rows of its tables.
    """
    with atomic_write(path) as temporary:
        temporary.write_bytes(_pdf(path, html, plain) + b"\n" + MARK)


def find_browser() -> str | None:
    """Return the path of a browser that prints pages; None if there is none."""
    return next((found for name in _BROWSERS if (found := shutil.which(name))), None)


def _has_weasyprint() -> bool:
    return importlib.util.find_spec("weasyprint") is not None


def _pdf(path: str | Path, html: Callable[[], str], plain: Callable[[], str]) -> bytes:
    """Return a page as PDF, by the browser or, where it fails or there is none, by WeasyPrint."""
    problem, browser = _INSTALL, find_browser()
    if browser is not None:
        try:
            return _printed(html(), browser)
        except (OSError, subprocess.SubprocessError) as error:
            problem = f"{browser} did not print the page ({shorten(_described(error), 160)})"
    if not _has_weasyprint():
        raise OutputError(f"cannot write {path}: {problem}: end the name in .html instead")
    return _by_weasyprint(plain())


def _described(error: Exception) -> str:
    if isinstance(error, subprocess.TimeoutExpired):
        return f"stopped after {MAX_SECONDS:g} seconds"
    return str(error)


def _printed(html: str, browser: str) -> bytes:
    """Return HTML as PDF, as a browser without a window prints it; it is stopped if it hangs."""
    # Files that the browser still writes while it ends must not hinder the removal of the folder.
    with tempfile.TemporaryDirectory(prefix="annotruth-", ignore_cleanup_errors=True) as folder:
        source, target, log = (Path(folder, name) for name in ("page.html", "page.pdf", "log"))
        source.write_text(html, encoding="utf-8", newline="\n")
        command = [browser, *_FLAGS, f"--user-data-dir={folder}", f"--print-to-pdf={target}"]
        if sys.platform != "win32" and os.geteuid() == 0:
            command.append("--no-sandbox")  # Chromium refuses to start as root with it
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [*command, source.as_uri()],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
                start_new_session=True,
            )  # fmt: skip
            try:
                code = process.wait(MAX_SECONDS)
            finally:
                _end(process)
        content = target.read_bytes() if target.is_file() else b""
        if not content.startswith(b"%PDF-"):
            said = log.read_text(errors="replace").split("\n")
            last = next((line.strip() for line in reversed(said) if line.strip()), "no message")
            raise OSError(f"exit code {code}: {last}")
        return content


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a browser with the processes that it started, if it still runs."""
    if process.poll() is None:
        if sys.platform == "win32":
            process.kill()
        else:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _by_weasyprint(html: str) -> bytes:
    """Return HTML as PDF; nothing but what is in it is loaded."""
    import weasyprint

    in_page = weasyprint.urls.URLFetcher(allowed_protocols=["data"])
    content: bytes = weasyprint.HTML(string=html, url_fetcher=in_page).write_pdf()
    return content
