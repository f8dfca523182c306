"""Print the result of `drhg solve -f json` (a file) and its gap to a reference cost."""

from __future__ import annotations

import json
import sys
from pathlib import Path

path, reference = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else ""
for line in path.read_text(encoding="utf-8").splitlines():
    result = json.loads(line)
    print(f"instance   {result['name']}, {result['n']:,} nodes")
    print(f"cost       {result['cost']:,.10g}")
    if reference:
        print(f"gap        {100 * (result['cost'] / float(reference) - 1):.2f} % over {reference}")
    print(f"time       {result['seconds']:.1f} s, {result['iterations']:,} iterations")
