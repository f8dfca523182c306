"""Coverage-guided fuzzing of the parsers with atheris; run by hand, for as long as one likes.

    pip install atheris
    python tests/fuzz_parse.py -max_total_time=600 -rss_limit_mb=0 corpus/   # files to start from

Whatever the bytes: a typed error, or an instance that survives being written and read again.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["drhg"]):
    from drhg import files as io
    from drhg.errors import DrhgError
    from drhg.problem import Instance, cvrp, tsp

TOUR = tsp([[0, 0], [0, 3], [4, 0]])
PLAN = cvrp([[0, 0], [0, 1], [1, 0]], [0, 2, 3], capacity=4)
PARSERS = (
    io.parse,
    io.from_json,
    lambda data: io.parse_tour(data, TOUR),
    lambda data: io.parse_sol(data, PLAN),
    lambda data: io.solution_from_json(data, PLAN),
)


def one_input(data: bytes) -> None:
    for parse in PARSERS:
        try:
            found = parse(data)
        except DrhgError:
            continue
        if isinstance(found, Instance):
            again = io.from_json(io.to_json(found))
            assert io.to_json(again) == io.to_json(found)
            assert io.parse(io.format_instance(found)).n == found.n


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
