"""How problems and solutions come and go."""

from drhg.files.atomic import (
    atomic_write,
)
from drhg.files.cvrplib import (
    format_sol,
    parse_sol,
)
from drhg.files.json import (
    from_json,
    solution_from_json,
    solution_row,
    to_json,
)
from drhg.files.messages import (
    in_file_numbers,
)
from drhg.files.paths import (
    STANDARD,
    PathLike,
    stem,
    suffix,
)
from drhg.files.registry import (
    read,
    read_solution,
    write_instance,
    write_solution,
)
from drhg.files.stops import (
    read_table,
)
from drhg.files.streams import (
    LARGEST_FILE,
)
from drhg.files.tsplib import (
    UNROUNDED,
    format_instance,
    format_tour,
    parse,
    parse_tour,
)

__all__ = [
    "LARGEST_FILE",
    "STANDARD",
    "UNROUNDED",
    "PathLike",
    "atomic_write",
    "format_instance",
    "format_sol",
    "format_tour",
    "from_json",
    "in_file_numbers",
    "parse",
    "parse_sol",
    "parse_tour",
    "read",
    "read_solution",
    "read_table",
    "solution_from_json",
    "solution_row",
    "stem",
    "suffix",
    "to_json",
    "write_instance",
    "write_solution",
]
