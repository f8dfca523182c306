"""Distances by road: asked of a server on this machine that answers as OSRM or Valhalla do."""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
import pytest
from test_spreadsheet import run

import drhg
from drhg.errors import DrhgError, InstanceError
from drhg.files.matrices import read_matrix, write_matrix
from drhg.files.registry import write_instance

QUICK = {"wait": 0.0, "attempts": 3, "timeout": 5.0}
Answer = tuple[int, Any]


class Stub(ThreadingHTTPServer):
    """A routing server whose roads are longer one way than the other."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.limit = 10**9  # places of a request
        self.asked: list[tuple[int, int]] = []
        self.paths: list[str] = []
        self.trouble: list[Callable[[], Answer]] = []  # what goes wrong before it goes well
        self.lost: set[tuple[float, float]] = set()  # places without a road

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Stub

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.server.paths.append(self.path)
        spots = [tuple(map(float, one.split(",")))[::-1] for one in
                 unquote(parts.path).rsplit("/", 1)[1].split(";")]  # fmt: skip
        query = {key: value[0] for key, value in parse_qs(parts.query, separator="&").items()}
        ends = [
            [spots[int(i)] for i in query[key].split(";")] for key in ("sources", "destinations")
        ]
        self._tell(*self._osrm(spots, *ends))

    def _osrm(self, spots: list, sources: list, targets: list) -> Answer:
        if self.server.trouble:
            return self.server.trouble.pop(0)()
        if len(spots) < 2:
            return 400, {"code": "InvalidOptions", "message": "a table has two places or more"}
        if len(spots) > self.server.limit:
            return 400, {"code": "TooBig", "message": "Too many table coordinates"}
        tables = self._tables(sources, targets)
        return 200, {"code": "Ok", "distances": tables[0], "durations": tables[1]}

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.paths.append(body["costing"])
        ends = [[(p["lat"], p["lon"]) for p in body[key]] for key in ("sources", "targets")]
        if self.server.trouble:
            self._tell(*self.server.trouble.pop(0)())
        elif len(ends[0]) * len(ends[1]) > self.server.limit:
            self._tell(400, {"error_code": 150, "error": "Exceeded max locations: 2500"})
        else:
            metres, seconds = self._tables(*ends)
            rows = [
                [
                    {"distance": None if d is None else d / 1000, "time": t}
                    for d, t in zip(*row, strict=True)
                ]
                for row in zip(metres, seconds, strict=True)
            ]
            self._tell(200, {"sources_to_targets": rows, "units": "kilometers"})

    def _tables(self, sources: list, targets: list) -> tuple[list, list]:
        self.server.asked.append((len(sources), len(targets)))
        lost = self.server.lost
        metres = [[None if {a, b} & lost else way(a, b) for b in targets] for a in sources]
        return metres, [[None if d is None else d / 10 for d in row] for row in metres]

    def _tell(self, status: int, told: Any) -> None:
        data = told if isinstance(told, bytes) else json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def way(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Metres by road: north is farther than south."""
    if a == b:
        return 0.0
    straight = 111_000 * math.dist(a, b)
    return round(straight + 1000 * max(0.0, b[0] - a[0]), 1)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Stub() as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield server
        server.shutdown()


def stops(n: int, seed: int = 1) -> drhg.Instance:
    rng = np.random.default_rng(seed)
    xy = np.round(np.stack([rng.uniform(47, 49, n), rng.uniform(10, 12, n)], axis=1), 6)
    return drhg.tsp(xy, metric="HAVERSINE", names=[f"stop {i}" for i in range(n)])


def by_hand(instance: drhg.Instance) -> np.ndarray:
    spots = [tuple(spot) for spot in instance.xy.tolist()]
    return np.array([[way(a, b) for b in spots] for a in spots])


@pytest.mark.parametrize("kind", [drhg.Osrm, drhg.Valhalla])
@pytest.mark.parametrize(("n", "block"), [(1, 4), (2, 4), (7, 3), (9, 4), (12, 50)])
def test_a_matrix_is_put_together_from_blocks(
    stub: Stub, tmp_path: Path, kind: type, n: int, block: int
) -> None:
    instance = stops(n)
    params = drhg.RoadParams(block=block, **QUICK)
    found = drhg.road_matrix(instance, kind(stub.url), cache=tmp_path, params=params)
    np.testing.assert_allclose(found.distances, by_hand(instance), rtol=1e-12)
    np.testing.assert_allclose(found.durations, by_hand(instance) / 10, rtol=1e-12)
    assert all(max(shape) <= block for shape in stub.asked)
    assert found.names == instance.names
    requests = len(stub.asked)
    again = drhg.road_matrix(instance, kind(stub.url), cache=tmp_path, params=params)
    assert np.array_equal(again.distances, found.distances)
    assert (len(stub.asked), again.asked) == (requests, 0)


@pytest.mark.parametrize("kind", [drhg.Osrm, drhg.Valhalla])
def test_blocks_shrink_to_what_the_server_takes(stub: Stub, tmp_path: Path, kind: type) -> None:
    stub.limit = 8 if kind is drhg.Osrm else 16
    instance = stops(20)
    params = drhg.RoadParams(block=16, **QUICK)
    found = drhg.road_matrix(instance, kind(stub.url), cache=tmp_path, params=params)
    np.testing.assert_allclose(found.distances, by_hand(instance), rtol=1e-12)
    refused = len([path for path in stub.paths]) - len(stub.asked)
    assert refused <= 3  # 16, 8: then it is known


def test_a_run_goes_on_where_it_was(stub: Stub, tmp_path: Path) -> None:
    instance = stops(12)
    server, params = drhg.Osrm(stub.url), drhg.RoadParams(block=4, **QUICK)
    done = []

    def stop_after_four(step: Any) -> None:
        done.append(step.done)
        if len(done) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drhg.road_matrix(
            instance, server, cache=tmp_path, params=params, on_progress=stop_after_four
        )
    assert len(stub.asked) == 4
    found = drhg.road_matrix(instance, server, cache=tmp_path, params=params)
    assert len(stub.asked) == 9
    assert (found.asked, found.kept) == (5 * 16, 4 * 16)
    np.testing.assert_allclose(found.distances, by_hand(instance), rtol=1e-12)
    damaged = sorted(tmp_path.iterdir())[0]
    damaged.write_bytes(damaged.read_bytes()[:90])
    assert drhg.road_matrix(instance, server, cache=tmp_path, params=params).asked == 16
    fresh = drhg.road_matrix(instance, server, cache=tmp_path, params=params, fresh=True)
    assert fresh.asked == 144


def test_a_new_stop_costs_its_own_rows_and_columns(stub: Stub, tmp_path: Path) -> None:
    server, params = drhg.Osrm(stub.url), drhg.RoadParams(block=4, **QUICK)
    drhg.road_matrix(stops(8), server, cache=tmp_path, params=params)
    spots = np.concatenate([stops(8).xy, [[48.0, 11.0]]])
    more = drhg.tsp(spots, metric="HAVERSINE")
    assert drhg.road_matrix(more, server, cache=tmp_path, params=params).asked == 2 * 8
    other = drhg.Osrm(stub.url, "cycling")
    assert drhg.road_matrix(stops(8), other, cache=tmp_path, params=params).asked == 64


def test_stops_at_one_place_are_asked_for_once(stub: Stub, tmp_path: Path) -> None:
    xy = [[48, 11], [48.1, 11], [48, 11], [48.1, 11], [48.1, 11]]
    instance = drhg.tsp(xy, metric="HAVERSINE")
    found = drhg.road_matrix(
        instance, drhg.Osrm(stub.url), cache=tmp_path, params=drhg.RoadParams(**QUICK)
    )
    assert stub.asked == [(2, 2)]
    np.testing.assert_allclose(found.distances, by_hand(instance), rtol=1e-12)


TROUBLE = {
    "busy": lambda: (429, {"message": "too many"}),
    "broken": lambda: (502, b"<html>bad gateway</html>"),
    "cut short": lambda: (200, b'{"code": "Ok", "dist'),
}


@pytest.mark.parametrize("what", TROUBLE)
def test_what_passes_is_tried_again(stub: Stub, tmp_path: Path, what: str) -> None:
    stub.trouble = [TROUBLE[what]] * 2
    notes: list[str] = []
    found = drhg.road_matrix(
        stops(3), drhg.Osrm(stub.url), cache=tmp_path, params=drhg.RoadParams(**QUICK),
        notice=notes.append,
    )  # fmt: skip
    np.testing.assert_allclose(found.distances, by_hand(stops(3)), rtol=1e-12)
    assert len(notes) == 2
    assert "again in 0 s" in notes[0]
    stub.trouble = [TROUBLE[what]] * 3
    with pytest.raises(DrhgError, match=r"no answer from osrm .* in 3 attempts .*kept: the same"):
        drhg.road_matrix(
            stops(4), drhg.Osrm(stub.url), cache=tmp_path, params=drhg.RoadParams(**QUICK)
        )


FINAL = {
    "no such profile": (
        drhg.Osrm, lambda: (400, {"code": "InvalidService", "message": "no such profile"}),
        "HTTP 400, InvalidService: no such profile",
    ),
    "no road near": (
        drhg.Osrm, lambda: (400, {"code": "NoSegment", "message": "no segment for coordinate 2"}),
        "stop 'stop 2': no segment",
    ),
    "no road near one": (
        drhg.Valhalla, lambda: (400, {"error_code": 171, "error": "No suitable edges"}),
        "one of the stops 'stop 0' .. 'stop 3': No suitable edges",
    ),
    "too far": (
        drhg.Valhalla, lambda: (400, {"error_code": 154, "error": "exceeds the max distance"}),
        "154: exceeds the max distance",
    ),
    "key": (drhg.Osrm, lambda: (401, None), "the server refused the request (HTTP 401)"),
    "no table": (drhg.Osrm, lambda: (200, {"code": "Ok", "durations": []}), "has durations only"),
    "wrong size": (
        drhg.Osrm, lambda: (200, {"code": "Ok", "distances": [[1]], "durations": [[1]]}),
        "the table in the answer is not 4 x 4",
    ),
    "no number": (
        drhg.Osrm,
        lambda: (200, {"code": "Ok", "distances": [["x"] * 4] * 4, "durations": []}),
        "the table in the answer has the entry 'x'",
    ),
    "something else": (drhg.Osrm, lambda: (200, [1]), "not that of an OSRM table service"),
    "another thing": (drhg.Valhalla, lambda: (200, {"a": 1}), "not that of a Valhalla matrix"),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "trouble", "words"), FINAL.values(), ids=FINAL)
def test_what_stays_wrong_is_told_at_once(
    stub: Stub, tmp_path: Path, kind: type, trouble: Callable, words: str
) -> None:
    stub.trouble = [trouble]
    with pytest.raises(DrhgError, match=re.escape(words)):
        drhg.road_matrix(stops(4), kind(stub.url), cache=tmp_path, params=drhg.RoadParams(**QUICK))
    assert list(tmp_path.iterdir()) == []


def test_stops_without_roads_are_named(stub: Stub, tmp_path: Path) -> None:
    instance = stops(9)
    stub.lost = {tuple(instance.xy[i].tolist()) for i in (2, 5)}
    with pytest.raises(InstanceError) as caught:
        drhg.road_matrix(
            instance, drhg.Osrm(stub.url), cache=tmp_path, params=drhg.RoadParams(block=4, **QUICK)
        )
    lines = str(caught.value).splitlines()
    assert lines[1:] == ["no road to or from 'stop 2'", "no road to or from 'stop 5'"]


def test_a_key_in_the_address_is_sent_and_never_shown(stub: Stub, tmp_path: Path) -> None:
    server = drhg.Osrm(f"{stub.url}/maps/?key=secret")
    drhg.road_matrix(stops(2), server, cache=tmp_path, params=drhg.RoadParams(**QUICK))
    assert re.search(r"^/maps/table/v1/driving/.*\?key=secret&sources=0;1", stub.paths[0])
    stub.trouble = [lambda: (403, {"code": "Forbidden"})]
    with pytest.raises(DrhgError) as caught:
        drhg.road_matrix(
            stops(3), server, cache=tmp_path, params=drhg.RoadParams(**QUICK), fresh=True
        )
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["", "localhost:5000", "ftp://a", "file:///etc/passwd", "http://"])
def test_an_address_is_one_of_a_server(url: str) -> None:
    for kind in (drhg.Osrm, drhg.Valhalla):
        with pytest.raises(DrhgError, match="not the address of a server"):
            kind(url)


def test_roads_need_the_globe(tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match="between latitudes and longitudes"):
        drhg.road_matrix(drhg.tsp([[0, 0], [1, 1]]), drhg.Osrm("https://a"), cache=tmp_path)


def test_nobody_listens(tmp_path: Path, stub: Stub) -> None:
    url = stub.url
    stub.shutdown()
    stub.server_close()
    with pytest.raises(DrhgError, match=r"Connection refused.*Is it running"):
        drhg.road_matrix(stops(2), drhg.Osrm(url), cache=tmp_path, params=drhg.RoadParams(**QUICK))


@pytest.mark.parametrize("ending", ["npy", "csv"])
def test_matrices_come_back_from_their_files(tmp_path: Path, ending: str) -> None:
    table = np.random.default_rng(1).uniform(0, 1e6, (4, 4)).round(3)
    np.fill_diagonal(table, 0)
    table = (table + table.T) / 2
    path = tmp_path / f"m.{ending}"
    names = ("a", "b, c", '"d"', "7")
    write_matrix(path, table, names)
    found, headings, _ = read_matrix(path)
    assert found.tolist() == table.tolist()
    assert headings == (names if ending == "csv" else None)
    with pytest.raises(DrhgError, match=r"ends in \.npy or \.csv"):
        write_matrix(tmp_path / "m.txt", table)


# --- the command ----------------------------------------------------------------------------------


def table_of(path: Path, n: int) -> Path:
    rows = [f"stop {i},{lat},{lon},3" for i, (lat, lon) in enumerate(stops(n).xy.tolist())]
    path.write_text("\n".join(["name,lat,lon,demand", *rows]) + "\n")
    return path


def test_the_command_writes_both_tables(stub: Stub, tmp_path: Path) -> None:
    path = table_of(tmp_path / "stops.csv", 6)
    done = run("matrix", path, "--osrm", stub.url, "--block", "4", "-o", "m.npy",
               "--durations", "out/s.csv", "--cache", tmp_path / "kept", at=tmp_path)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "m.npy\nout/s.csv\n")
    np.testing.assert_allclose(np.load(tmp_path / "m.npy"), by_hand(stops(6)))
    rows = (tmp_path / "out/s.csv").read_text().splitlines()
    assert rows[0] == ",stop 0,stop 1,stop 2,stop 3,stop 4,stop 5"
    assert rows[1].startswith(f"stop 0,0,{by_hand(stops(6))[0, 1] / 10:g}")
    before = len(stub.asked)
    run("matrix", path, "--osrm", stub.url, "--block", "4", "-o", "m.npy",
        "--cache", tmp_path / "kept", at=tmp_path)  # fmt: skip
    assert len(stub.asked) == before


def test_any_instance_on_the_globe_has_a_matrix(stub: Stub, tmp_path: Path) -> None:
    write_instance(tmp_path / "stops.json", stops(5))
    done = run("matrix", tmp_path / "stops.json", "--osrm", stub.url, "-o", "m.npy",
               "--cache", tmp_path / "kept", at=tmp_path)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "m.npy\n")
    np.testing.assert_allclose(np.load(tmp_path / "m.npy"), by_hand(stops(5)))


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["-o", "m.npy"], 2, "say which server"),
        (["--osrm", "https://a", "--valhalla", "https://b", "-o", "m.npy"], 2, "say which server"),
        (["--osrm", "https://a"], 2, "say what to write"),
        (["--osrm", "nowhere", "-o", "m.npy"], 2, "not the address of a server"),
        (["--osrm", "https://a", "-o", "m.txt"], 3, "ends in .npy or .csv"),
        (["--osrm", "https://a", "-o", "stops.csv"], 2, "would be overwritten"),
        (["--osrm", "https://a", "-o", "m.csv", "--columns", "lat=Lat"], 3, "no column 'Lat'"),
    ],
)
def test_wrong_calls_are_told(tmp_path: Path, options: list[str], code: int, words: str) -> None:
    table_of(tmp_path / "stops.csv", 3)
    done = run("matrix", "stops.csv", *options, at=tmp_path)
    assert done.returncode == code
    assert words in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["stops.csv"]
