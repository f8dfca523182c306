"""A folder for the files that a tutorial writes, with the examples beside them."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

_examples = (Path.cwd() / "../../examples").resolve()
_folder = tempfile.mkdtemp(prefix="drhg-tutorial-")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
os.chdir(_folder)
Path("examples").symlink_to(_examples)
