"""What all tests share: where real data is, and how long hypothesis may look."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_CALM = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=100, **_CALM)
settings.register_profile("ci", max_examples=2000, **_CALM)
settings.register_profile("soak", max_examples=20000, **_CALM)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with TSPLIB and CVRPLIB; named by DRHG_DATA, else 'data'."""
    folder = Path(os.environ.get("DRHG_DATA", "data"))
    if not (folder / "tsplib").is_dir():
        pytest.skip(f"no benchmark data in {folder.absolute()} (set DRHG_DATA)")
    return folder
