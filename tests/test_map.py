"""The map of a plan, in a real browser where there is one: looked at, hovered, clicked, read."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drhg
from drhg.construct import space_filling
from drhg.files.map import format_map

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or "/usr/bin/chromium"


def city(customers: int, capacity: int) -> tuple[drhg.Instance, drhg.Solution]:
    """Stops around a city, in the plan of a space-filling curve."""
    rng = np.random.default_rng(customers)
    step = rng.normal(0, 0.08, (customers + 1, 2)) * [0.7, 1]
    step[0] = 0
    demand = rng.integers(1, 9, customers + 1)
    demand[0] = 0
    names = ["Depot", *(f"Customer <{i}>" for i in range(1, customers + 1))]
    instance = drhg.cvrp(
        np.array([48.14, 11.58]) + step, demand, capacity, metric="HAVERSINE", names=names,
        name=f"{customers} & more",
    )  # fmt: skip
    return instance, space_filling(instance)[0]


def page_of(customers: int, capacity: int) -> str:
    instance, solution = city(customers, capacity)
    return format_map(instance, solution, drhg.cost(instance, solution))


def facts_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    facts: dict[str, Any] = json.loads(found[1])
    return facts


def test_the_page_holds_the_plan_and_nothing_from_outside() -> None:
    instance, solution = city(60, 40)
    page = page_of(60, 40)
    facts = facts_of(page)
    assert [route["nodes"] for route in facts["routes"]] == [r.tolist() for r in solution.routes]
    assert facts["names"][7] == "Customer <7>"
    assert "<7>" not in page  # names cannot end the script
    assert "60 &amp; more" in page
    assert sum(route["length"] for route in facts["routes"]) == pytest.approx(
        drhg.cost(instance, solution), abs=0.1
    )
    assert [route["load"][-1] for route in facts["routes"]] == [
        instance.demand[route].sum() for route in solution.routes
    ]
    outside = set(re.findall(r"https?://[^/\"']+", page))
    assert outside == {"https://tile.openstreetmap.org"}  # once the reader asks for it
    assert not re.search(r"<(link|img|iframe)|src=|@import|fetch\(|XMLHttp", page)


def test_a_map_needs_coordinates() -> None:
    bare = drhg.tsp(matrix=np.ones((3, 3)))
    with pytest.raises(drhg.DrhgError, match="no coordinates to draw"):
        format_map(bare, drhg.Solution([[0, 1, 2]]), 3)


def test_ten_thousand_stops_stay_small() -> None:
    page = page_of(10_000, 200)
    print(f"\nmap of 10,000 stops: {len(page.encode()) / 1e6:.2f} MB (aim 3)")
    assert len(page.encode()) < 3_000_000


# --- in a browser ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    if not Path(BROWSER).exists():
        pytest.skip("no Chromium on this machine")
    with api.sync_playwright() as play:
        opened = play.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu", "--disable-quic"]
        )
        yield opened
        opened.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """A page with the map of 60 customers, and all that it asked of a network."""
    path = tmp_path / "map.html"
    path.write_text(page_of(60, 40), encoding="utf-8")
    context = browser.new_context(viewport={"width": 1200, "height": 800}, reduced_motion="reduce")
    page = context.new_page()
    page.asked, page.errors = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_function("window.drhgMap && document.querySelector('tr[data-route]')")
    yield page
    assert page.errors == []
    assert [url for url in page.asked if not url.startswith("file:")] == []
    context.close()


def at(page: Any, node: int) -> tuple[float, float]:
    """Where a node is on the page."""
    x, y = page.evaluate(f"window.drhgMap.screen({node})")
    return x, y


def test_hovering_a_stop_tells_about_it(opened: Any) -> None:
    instance, solution = city(60, 40)
    route = solution.routes[1]
    opened.mouse.move(*at(opened, int(route[2])))
    told = opened.locator("#tip").inner_text()
    assert told.splitlines()[:2] == [
        f"Customer <{route[2]}>", f"Route 2, stop 3 of {len(route)}"
    ]  # fmt: skip
    assert f"load so far {instance.demand[route[:3]].sum()}" in told
    opened.mouse.move(*at(opened, 0))
    assert "Depot" in opened.locator("#tip").inner_text()


def test_the_table_has_every_route(opened: Any) -> None:
    instance, solution = city(60, 40)
    words = opened.locator("#rows tr").all_inner_texts()
    assert len(words) == len(solution.routes)
    for r, (text, route) in enumerate(zip(words, solution.routes, strict=True), start=1):
        cells = text.split()
        assert cells[:3] == [str(r), str(len(route)), str(instance.demand[route].sum())]
        length = drhg.cost(instance, drhg.Solution([route])) / 1000
        assert float(cells[3]) == pytest.approx(length, abs=0.06)
        assert cells[4] == "km"
    opened.get_by_role("button", name="Length").click()
    lengths = [float(text.split()[3]) for text in opened.locator("#rows tr").all_inner_texts()]
    assert lengths == sorted(lengths, reverse=True)


def test_a_click_picks_a_route_and_escape_lets_go(opened: Any) -> None:
    _, solution = city(60, 40)
    opened.mouse.click(*at(opened, int(solution.routes[2][1])))
    assert opened.evaluate("window.drhgMap.picked") == 2
    assert opened.locator("#detail-title").inner_text() == "Route 3"
    names = opened.locator("#stops li > :nth-child(2)").all_inner_texts()
    assert names == [f"Customer <{node}>" for node in solution.routes[2]]
    opened.keyboard.press("Escape")
    assert opened.locator("#detail").is_hidden()
    opened.locator("#rows tr").nth(4).click()
    assert opened.locator("#detail-title").inner_text() == "Route 5"
    opened.locator("#find").fill("<17>")
    opened.keyboard.press("Enter")
    assert "Customer <17>" in opened.locator("#tip").inner_text()


def test_ten_thousand_stops_are_painted_soon(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "map.html"
    path.write_text(page_of(10_000, 200), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1200, "height": 800})
    page.goto("about:blank")
    began = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    print(f"\nfirst paint of 10,000 stops: {paint:.0f} ms (aim 1000)")
    assert paint < 5000  # a busy machine is slower
    assert time.perf_counter() - began < 30
    assert page.locator("#rows tr").count() > 200
    page.close()
