"""Take the pictures of the front page, the sample report of a built site in light and dark.

    python -m tests.docs.screenshots build/docs

Run it when the first screen of the report has changed.
"""

import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
SIZE = {"width": 1200, "height": 700}


def main(folder: Path) -> None:
    """Write report-light.png and report-dark.png."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for theme in ("light", "dark"):
            tab = chromium.new_page(viewport=SIZE, color_scheme=theme)
            tab.goto((folder / "sample-report.html").as_uri())
            tab.wait_for_selector("html[data-ready]", state="attached")
            path = PICTURES / f"report-{theme}.png"
            tab.screenshot(path=path)
            # A third of the size; the page has few colors.
            Image.open(path).quantize(96, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
