#!/usr/bin/env bash
# How long a newcomer waits from a fresh clone to a spreadsheet's routes and their map.
#
#   examples/newcomer.sh [FOLDER]
#
# Everything is made in FOLDER (by default out/newcomer), whose own environment and compiled kernels
# are removed first, so that nothing is warm but pip's cache.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
python=$(command -v "${PYTHON:-python3.11}" || command -v python3)
folder=${1:-$root/out/newcomer}
mkdir -p "$folder"
cd "$folder"
rm -rf clone venv kernels routes.csv map.html
export NUMBA_CACHE_DIR=$folder/kernels
unset PYTHONPATH

TIMEFORMAT='%1R seconds, %1U of a core'
step() { echo "--- $*"; time "$@"; }
everything() {
  step git clone --quiet --depth 1 "file://$root" clone
  step "$python" -m venv venv
  step venv/bin/python -m pip --quiet --disable-pip-version-check install ./clone -c clone/constraints.txt
  step venv/bin/drhg solve clone/examples/stops.csv --capacity 120 -t 5 -o routes.csv --map map.html --routes
}
time everything
echo "the routes  $folder/routes.csv"
echo "the map     $folder/map.html"
