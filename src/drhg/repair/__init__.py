"""From reduced graphs to reconnected ones."""

from drhg.repair.insertion import (
    InsertionRepair,
)
from drhg.repair.local import (
    LocalSearchRepair,
)
from drhg.repair.protocol import (
    Repair,
)

__all__ = [
    "InsertionRepair",
    "LocalSearchRepair",
    "Repair",
]
