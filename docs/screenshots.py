"""The pictures of the live page, taken from a running service.

    drhg serve -p 8000 -w 3
    python docs/screenshots.py http://127.0.0.1:8000/ docs

Needs playwright, Pillow and Chromium on the path.
"""

from __future__ import annotations

import io
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

COLOURS = 160  # of a picture, which keeps it small


def until(page: Any, expression: str) -> None:
    for _ in range(3000):
        if page.evaluate(expression):
            return
        time.sleep(0.02)
    raise SystemExit(f"never: {expression}")


def shoot(page: Any, path: Path) -> None:
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


def main(url: str, folder: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 760}, color_scheme="dark")
        page.goto(url)
        until(page, "document.getElementById('service').dataset.state === 'ready'")
        page.click("text=300 deliveries")
        page.locator("#seconds").fill("2")
        page.click("#solve")
        until(page, "drhg.solve.run?.state === 'finished'")
        time.sleep(1.5)
        shoot(page, folder / "page-solve.png")
        page.click("#theme")
        page.click("#clear")
        page.click("#tab-solve")
        page.click("text=200 stops")
        page.click("#tab-step")
        page.click("#step")
        until(page, "drhg.steps.stage === 3 && performance.now() - drhg.steps.at > 1250")
        shoot(page, folder / "page-step.png")
        page.click("#tab-solve")
        page.click("#clear")
        page.click("text=1,000 stops")
        page.click("#tab-race")
        page.locator("#seconds").fill("3")
        page.click("#race")
        until(page, "drhg.race.runs.length === 3 && !drhg.race.running")
        time.sleep(1.5)
        shoot(page, folder / "page-race.png")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
