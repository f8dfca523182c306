"""A file format of one's own: points, one per line, as `drhg solve` would read them.

python examples/file_format.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import drhg
from drhg.files.registry import INSTANCES, InstanceFormat


def read_points(data: bytes, file: str) -> drhg.Instance:
    """`x y` on every line; what does not fit is refused with its line."""
    points = []
    for number, line in enumerate(data.decode().splitlines(), start=1):
        try:
            x, y = map(float, line.split())
        except ValueError:
            raise drhg.InstanceError("not two numbers", file=file, line=number) from None
        points.append((x, y))
    return drhg.tsp(points, name=Path(file).stem)


def write_points(instance: drhg.Instance) -> str:
    return "".join(f"{x!r} {y!r}\n" for x, y in instance.xy.tolist())


INSTANCES[".points"] = InstanceFormat("points", read_points, write_points, problems=("tsp",))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "five.points"
        path.write_text("0 0\n0 1\n1 1\n1 0\n0.5 2\n")
        print(drhg.solve(drhg.read(path), max_iters=50).summary())
        path.write_text("0 0\n0 one\n")
        try:
            drhg.read(path)
        except drhg.DrhgError as error:
            print(f"refused: {error}".replace(folder, "..."))
