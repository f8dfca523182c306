"""Wrong calls that newcomers make: each is refused at once, in one line that names what is wrong.

One table is of Python, one of the command line (`test_cli.py` has more of those). Nothing is
searched, compiled or left behind.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import drhg
from drhg import cli
from drhg.network import weights

QUICK = 0.3  # seconds of the processor, modules loaded
TRIES = 3  # the quickest counts: a collection of garbage from earlier tests may fall into one

TSP = """NAME: square
TYPE: TSP
DIMENSION: 4
EDGE_WEIGHT_TYPE: EUC_2D
NODE_COORD_SECTION
1 0 0
2 0 10
3 10 10
4 10 0
EOF
"""
TOUR = "NAME: square\nTYPE: TOUR\nDIMENSION: 4\nTOUR_SECTION\n1\n2\n3\n4\n-1\nEOF\n"
NETWORK = "[network]\npreset = 'economy'\n"
FILES = {
    "square.tsp": TSP,
    "second.tsp": TSP.replace("square", "second"),
    "ordered.tsp": TSP.replace("TYPE: TSP", "TYPE: SOP"),
    "empty.tsp": "",
    "binary.tsp": "\0\1\2",
    "square.tour": TOUR,
    "three.tour": TOUR.replace("4\n-1", "-1"),
    "plan.sol": "Route #1: 1 2\nRoute #2: 3\nCost 40\n",
    "notes.txt": "Two roads diverged\n",
    "empty.jsonl": "",
    "broken.jsonl": "{\n",
    "weights.safetensors": "no weights, but long enough for a header\n",
    "good.toml": NETWORK,
    "key.toml": "learning_rate = 0.1\n" + NETWORK,
    "depth.toml": NETWORK + "depth = 3\n",
    "optimiser.toml": "optimiser = 'sgd'\n" + NETWORK,
    "number.toml": "labels = 3\n" + NETWORK,
    "never.toml": "every = 0\n" + NETWORK,
    "single.toml": "k = [20]\n" + NETWORK,
    "latin.toml": "labels = 'é'\n" + NETWORK,
    "prose.toml": "Two roads diverged\n",
    "labels/tsp50-seed0.npz": "no shard",
    "broken/tsp100-seed0.npz": "no shard",
    "folder/notes.txt": "",
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder with files of many kinds; at the end it is as it was."""

    def content() -> dict[Path, bytes | None]:
        return {p: p.read_bytes() if p.is_file() else None for p in tmp_path.rglob("*")}

    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(text.encode("latin-1"))
    before = content()
    yield tmp_path
    assert content() == before


# --- Python ---------------------------------------------------------------------------------------

api: Any = drhg  # the calls below have wrong types
POINTS = [[0, 0], [0, 1], [1, 1], [1, 0]]
TOURS, PLANS = drhg.tsp(POINTS, name="square"), drhg.cvrp(POINTS, [0, 1, 1, 1], 2, name="cross")
BARE = drhg.tsp(matrix=1 - np.eye(4, dtype=int), name="bare")
ROUND = drhg.Solution([[0, 1, 2, 3]])

Call = Callable[[], Any]


def solve(**options: Any) -> Call:
    return lambda: api.solve(TOURS, **options)


def neural(**options: Any) -> Call:
    return lambda: api.solve(TOURS, method=api.Regions(repair=api.Neural(**options)))


def cut(name: str, **options: Any) -> Call:
    return lambda: api.solve(TOURS, method=api.Regions(getattr(api, name)(**options)))


def result() -> drhg.Result:
    return drhg.solve(TOURS, time_limit=0)


SOLVE: list[tuple[str, Call, str]] = [
    ("a file", lambda: api.solve("x.tsp"), r"^instance must be an Instance, as drhg\.read"),
    ("coordinates", lambda: api.solve(POINTS), "^instance must be an Instance"),
    ("a list", lambda: api.solve([TOURS, PLANS]), "^instance must be an Instance"),
    ("time_limit text", solve(time_limit="10"), "^time_limit must be a number, not '10'"),
    ("time_limit nan", solve(time_limit=float("nan")), "^time_limit must be a number, not nan"),
    ("time_limit complex", solve(time_limit=np.complex64(1)), "^time_limit must be a number"),
    ("time_limit negative", solve(time_limit=-1), "^time_limit must be at least 0, not -1"),
    ("time_limit huge", solve(time_limit=10**400), "^time_limit must be a number"),
    ("max_iters negative", solve(max_iters=-1), "^max_iters must be a whole number of at least 0"),
    ("max_iters text", solve(max_iters="1000"), "^max_iters must be a whole number"),
    ("no_improve half", solve(no_improve=0.5), "^no_improve must be a whole number"),
    ("target text", solve(target="low"), "^target must be a number, not 'low'"),
    ("seed negative", solve(seed=-1), "^seed must be a whole number of at least 0, not -1"),
    ("seed half", solve(seed=1.5), "^seed must be a whole number"),
    ("seed none", solve(seed=None), "^seed must be a whole number"),
    ("threads negative", solve(threads=-5), "^threads must be a whole number of at least 1"),
    ("start list", solve(start=[0, 1, 2, 3]), r"^start must be .* drhg\.Solution"),
    ("start file", solve(start=Path("square.tour")), r"^start must be .* drhg\.Solution"),
    ("start typo", solve(start="greedyy"), "^start: 'greedyy' is no start.*known: auto, greedy"),
    ("start of routes", solve(start="sweep"), "^start: 'sweep' is no start of square"),
    (
        "start incomplete",
        solve(start=drhg.Solution([[0, 1, 2]])),
        r"^start is no solution of square: node 3 \(counted from 0\) is not visited",
    ),
    ("method misspelt", solve(method="neurall"), "^method: unknown name 'neurall'; known: auto"),
    ("method number", solve(method=3), r"^method must be a name \(auto, .* or a strategy.*not 3"),
    ("method operator", solve(method=drhg.Neural()), "^method must be a name .*not Neural"),
    ("method class", solve(method=drhg.Regions), "^method: Regions is a class; pass an object"),
    ("method of routes", solve(method=drhg.Routes()), "^method: Routes is for a CVRP"),
    ("destroy name", lambda: api.Regions(destroy="cluster"), "^destroy must be a destroy operator"),
    ("destroy number", lambda: api.Regions(3), "^destroy must be a destroy operator.*not 3"),
    ("destroy class", lambda: api.Regions(drhg.Cluster), "^destroy must be a destroy operator"),
    ("destroy of routes", cut("Strings"), "^method: Strings is for routes, and this is a tour"),
    ("repair name", lambda: api.Regions(repair="neural"), "^repair must be a repair operator"),
    ("accept number", lambda: api.Regions(accept=3), r"^accept must be Improve\(\), Anneal\(\)"),
    ("anneal zero", lambda: api.Anneal(end=0), "^end must be above 0, not 0"),
    ("anneal text", lambda: api.Anneal(start="hot"), "^start must be a finite number, not 'hot'"),
    ("k one number", cut("Cluster", k=5), "^k must be two numbers, 1 <= low <= high, not 5"),
    ("k tuple of one", cut("Cluster", k=(5,)), "^k must be two numbers"),
    ("k upside down", cut("Covering", k=(50, 10)), "^k must be two numbers"),
    ("centres typo", cut("Cluster", centres="gird"), "^centres must be one of uniform, grid, not"),
    ("depot_edges", cut("Cluster", depot_edges="some"), "^depot_edges must be one of adjacent, "),
    (
        "grid of a matrix",
        lambda: api.solve(BARE, method=api.Regions(api.Cluster(centres="grid"))),
        "^method: a grid of centres needs coordinates",
    ),
    ("library misspelt", lambda: api.Library("glue"), "^name must be one of auto, fast_tsp"),
    ("library list", lambda: api.Library(["pyvrp"]), r"^name must be one of .*not \['pyvrp'\]"),
    (
        "library of routes",
        lambda: api.solve(TOURS, method=api.Regions(repair=api.Library("pyvrp"))),
        "^method: pyvrp does not solve a TSP; known: fast_tsp",
    ),
    ("model missing", neural(model=Path("none.safetensors")), r"^none\.safetensors: cannot read"),
    ("model text", neural(model="weights.safetensors"), "^weights.*: not usable as weights"),
    ("model folder", neural(model="folder"), "^folder: cannot read weights: Is a directory"),
    ("model unknown", neural(model="huge"), "^no weights named 'huge'.*economy"),
    ("model number", neural(model=3), "^model must be a name or a file, not 3"),
    ("model NUL", neural(model="a\0.safetensors"), "cannot read weights: embedded null"),
    ("model of routes", neural(model="economy-routes"), "^method: the weights economy-routes rep"),
    ("matrix", lambda: api.solve(BARE, method="neural"), "^method: a network needs coordinates"),
    ("paper routes", lambda: api.solve(PLANS, method="paper"), "^method: the weights paper repair"),
    ("alternatives", neural(alternatives=0), "^alternatives must be a whole number of at least 1"),
    ("sample text", neural(sample="no"), "^sample must be True or False, not 'no'"),
    ("device misspelt", neural(device="gpu"), "^device must be one of auto, cpu, cuda, not 'gpu'"),
    ("on_improve number", solve(on_improve=5), "^on_improve must be a function, not 5"),
    ("on_progress text", solve(on_progress="print"), "^on_progress must be a function"),
    ("should_stop flag", solve(should_stop=True), "^should_stop must be a function, not True"),
    ("many: none", lambda: api.solve_many(None), "^instances must be a list of them, not None"),
    ("many: one", lambda: api.solve_many(TOURS), "^instances must be a list of them, not Inst"),
    ("many: a file", lambda: api.solve_many([TOURS, "b"]), r"^instances\[1\] must be an Instance"),
    (
        "many: method",
        lambda: api.solve_many([TOURS], method="glue"),
        "^method: unknown name",
    ),
    (
        "many: jobs",
        lambda: api.solve_many([TOURS], jobs=0),
        "^jobs must be a whole number",
    ),
    ("many: seed", lambda: api.solve_many([TOURS], seed=-1), "^seed must be a whole number"),
]
FILES_AND_PROBLEMS: list[tuple[str, Call, str]] = [
    ("read number", lambda: api.read(3), "^path must be the name of a file, not 3"),
    ("read missing", lambda: api.read("none.tsp"), r"^none\.tsp: cannot be read: No such file"),
    ("read folder", lambda: api.read(Path("folder")), "^folder: not a regular file"),
    ("read empty", lambda: api.read("empty.tsp"), r"^empty\.tsp:1: the file is empty"),
    ("read prose", lambda: api.read("notes.txt"), r"^notes\.txt:1: unknown keyword"),
    ("read SOP", lambda: api.read("ordered.tsp"), r"^ordered\.tsp:2: TYPE 'SOP'"),
    (
        "read_solution swapped",
        lambda: api.read_solution(TOURS, "square.tour"),
        "^path must be the name of a file, not Instance",
    ),
    (
        "read_solution of a name",
        lambda: api.read_solution("square.tour", "square.tsp"),
        "^instance must be an Instance, as drhg.read",
    ),
    (
        "read_solution suffix",
        lambda: api.read_solution("notes.txt", TOURS),
        r"^notes\.txt: .* must end in \.tour",
    ),
    (
        "read_solution of routes",
        lambda: api.read_solution("plan.sol", TOURS),
        r"^plan\.sol:1: .* but the instance is a TSP",
    ),
    (
        "write_solution no folder",
        lambda: api.write_solution("none/a.tour", TOURS, ROUND),
        r"^none/a\.tour: cannot be written: No such file",
    ),
    (
        "write_solution suffix",
        lambda: api.write_solution("a.sol", TOURS, ROUND),
        r"^a\.sol: .* must end in \.tour",
    ),
    (
        "write_solution result",
        lambda: api.write_solution("a.tour", TOURS, result()),
        "^solution must be a Solution",
    ),
    (
        "write_solution cost",
        lambda: api.write_solution("a.json", TOURS, ROUND, "cheap"),
        "^cost must be a finite number, not 'cheap'",
    ),
    (
        "to_json number",
        lambda: result().to_json(file=3),  # type: ignore[arg-type]
        "^file must be the name of a file, not 3",
    ),
    ("check list", lambda: api.check(TOURS, [[0, 1]]), "^solution must be a Solution, such as"),
    ("check swapped", lambda: api.check(ROUND, TOURS), "^instance must be an Instance"),
    (
        "cost of another",
        lambda: api.cost(TOURS, drhg.Solution([[0, 99]])),
        r"names node 99 \(counted from 0\), which does not exist",
    ),
    ("tsp nothing", lambda: api.tsp(), r"^neither coordinates \(xy\) nor a distance matrix"),
    ("tsp file", lambda: api.tsp("a.tsp"), "^xy must be an array of numbers, not 'a.tsp'"),
    ("tsp in space", lambda: api.tsp([[0, 0, 0]]), r"^xy has shape \(1, 3\), expected \(n, 2\)"),
    ("tsp metric", lambda: api.tsp(POINTS, metric="km"), "^unknown metric 'km'; known: EXACT"),
    ("tsp nan", lambda: api.tsp([[0, float("nan")]]), r"^node 0 .* has the coordinates 0\.0, nan"),
    ("tsp fixed_edges", lambda: api.tsp(POINTS, fixed_edges=3), "^fixed_edges must be pairs"),
    (
        "cvrp demand above",
        lambda: api.cvrp(POINTS, [0, 1, 9, 1], 5),
        r"^node 2 \(counted from 0\) demands 9, more than the capacity 5",
    ),
    ("cvrp demand", lambda: api.cvrp(POINTS, [1, 1, 1], 5), r"^demand has shape \(3,\), expected"),
    ("cvrp capacity", lambda: api.cvrp(POINTS, [0, 1, 1, 1], "5"), "^capacity must be a finite"),
    ("cvrp depot", lambda: api.cvrp(POINTS, [0, 1, 1, 1], 5, depot=4), "^depot 4 is not one of"),
    (
        "cvrp vehicles",
        lambda: api.cvrp(POINTS, [0, 4, 4, 4], 5, vehicles=1),
        "^total demand 12 exceeds 1 vehicles of capacity 5",
    ),
    (
        "cvrp max_distance",
        lambda: api.cvrp(POINTS, [0, 1, 1, 1], 5, max_distance="far"),
        "^max_distance must be a finite number",
    ),
    ("Instance nothing", lambda: api.Instance(), "^neither coordinates"),
    ("Instance capacity", lambda: api.Instance(xy=POINTS, capacity=5), "^capacity .* no demand"),
    ("Solution flat", lambda: api.Solution([0, 1, 2]), "^routes: .* a tour is a list of one route"),
    ("Solution text", lambda: api.Solution("012"), "^routes must be a list of lists of node numb"),
    ("Solution halves", lambda: api.Solution([[0.5, 1]]), "^routes: a route is a list of node num"),
    ("tour of routes", lambda: api.Solution([[0], [1]]).tour, "^2 routes are not one tour"),
    ("uniform_tsp text", lambda: api.uniform_tsp("100"), "^n must be a whole number of at least 1"),
    ("uniform_tsp none", lambda: api.uniform_tsp(0), "^n must be a whole number of at least 1"),
    ("clustered_tsp", lambda: api.clustered_tsp(9, clusters=0), "^clusters must be a whole number"),
    ("uniform_cvrp", lambda: api.uniform_cvrp(9, seed=-1), "^seed must be a whole number"),
    ("x_cvrp", lambda: api.x_cvrp(9, demand="big"), "^unknown demand 'big'; known: unit"),
    ("warmup", lambda: api.warmup(["tps"]), "^methods: unknown method 'tps'; known: tsp, cvrp"),
]


def _config(name: Any) -> Any:
    from drhg.training.recipe import read_recipe

    return read_recipe(name)


def _label(*arguments: Any) -> Any:
    from drhg.training.labels import label

    return label(*arguments)


NETWORKS: list[tuple[str, Call, str]] = [
    ("weights number", lambda: weights.load(3), "^weights have a name or a file, not 3"),  # type: ignore[arg-type]
    ("weights prose", lambda: weights.load("notes.txt"), r"^notes\.txt: not usable as weights"),
    ("network", lambda: weights.ModelConfig.of("huge"), "^unknown network 'huge'; known: paper"),
    (
        "network key",
        lambda: weights.ModelConfig.of("economy", depth=3),
        "^unknown key 'depth' of a network; known: preset, d, layers",
    ),
    ("label none", lambda: _label(Path("labels"), 5, 0), "^cannot label 0 instances of 5 nodes"),
    ("config number", lambda: _config(3), "^path must be the name of a file, not 3"),
    ("config missing", lambda: _config("none.toml"), r"^none\.toml: cannot read: No such file"),
    ("config prose", lambda: _config("prose.toml"), r"^prose\.toml: not a TOML file: .*line 1"),
    ("config bytes", lambda: _config("latin.toml"), r"^latin\.toml: not a TOML file: 'utf-8'"),
    ("config key", lambda: _config("key.toml"), r"^key\.toml: unknown key 'learning_rate'; known"),
    ("config network", lambda: _config("depth.toml"), r"^depth\.toml: unknown key 'depth'"),
    ("config optimiser", lambda: _config("optimiser.toml"), r"unknown optimiser 'sgd'; known: ad"),
    ("config kind", lambda: _config("number.toml"), r"^number\.toml: labels = 3 is of the wrong"),
    ("config every", lambda: _config("never.toml"), r"^never\.toml: every must be at least 1"),
    ("config k", lambda: _config("single.toml"), r"^single\.toml: k = \[20\] is of the wrong kind"),
]
PYTHON = {name: (call, words) for name, call, words in [*SOLVE, *FILES_AND_PROBLEMS, *NETWORKS]}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", PYTHON)
def test_a_wrong_call_is_refused_at_once_by_name(name: str) -> None:
    call, words = PYTHON[name]
    with pytest.raises(drhg.DrhgError):  # loads what is loaded on first use
        call()
    threads = threading.active_count()
    seconds = []
    for _ in range(TRIES):
        began = time.thread_time()
        with pytest.raises(drhg.DrhgError, match=words) as refused:
            call()
        seconds.append(time.thread_time() - began)
    assert min(seconds) < QUICK
    assert threading.active_count() == threads
    assert len(str(refused.value).splitlines()) == 1
    assert "__init__" not in str(refused.value)


def test_a_wrong_call_of_solve_needs_no_compiler(here: Path) -> None:
    """Nothing heavy is loaded to say no, and no process compiles anything."""
    program = (
        "import subprocess, sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "import drhg, test_wrong_calls as table\n"
        "subprocess.Popen = None\n"
        "for name, call, words in table.SOLVE:\n"
        "    try:\n"
        "        call()\n"
        "    except drhg.DrhgError:\n"
        "        continue\n"
        "    sys.exit(f'{name} is not refused')\n"
        "print(*sorted({'numba', 'llvmlite', 'scipy', 'torch'} & set(sys.modules)))\n"
    )
    command = [sys.executable, "-c", program, str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=here, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")


# --- the command line -----------------------------------------------------------------------------

LINES = [tuple(part.strip() for part in line.split("|")) for line in r"""
solve -t 10 | 2 | Missing argument 'FILE'
solve none.tsp | 3 | none.tsp: cannot be read: No such file
solve empty.tsp | 3 | empty.tsp:1: the file is empty
solve binary.tsp | 3 | binary.tsp:1: not a text file
solve notes.txt | 3 | notes.txt:1: unknown keyword
solve ordered.tsp | 3 | ordered.tsp:2: TYPE 'SOP' is not solved here
solve square.tsp -t 10s | 2 | '--time-limit'
solve square.tsp -t nan | 2 | '--time-limit'
solve square.tsp --target nan | 2 | --target
solve square.tsp -n 1e6 | 2 | '--max-iters'
solve square.tsp --threads 0 | 2 | '--threads'
solve square.tsp --fast | 2 | No such option: --fast
solve square.tsp --set k | 2 | --set: 'k' is not KEY=VALUE, such as destroy.k=20,200
solve square.tsp --set k=5 | 2 | --set: k: the method auto has no such setting; known:
solve square.tsp --set genetic.target_feasible=3 | 2 | --set: genetic.target_feasible must be at most 1, not 3
solve square.tsp --set genetic.target=1 | 2 | --set: genetic.target: GeneticParams has no such setting
solve square.tsp -m local --set k=5 | 2 | --set: k: Regions has no such setting; known: destroy, repair
solve square.tsp -m local --set destroy.k=5 | 2 | --set: destroy.k must be a list, such as [20, 100], not 5
solve square.tsp -m local --set destroy.k=50,5 | 2 | --set: destroy.k must be two numbers, 1 <= low <= high
solve square.tsp -m local --set destroy=glue | 2 | --set: destroy: unknown operator 'glue'; known: cluster
solve square.tsp -m local --set destroy.depot_edges=some | 2 | --set: destroy.depot_edges must be one of adjacent
solve square.tsp -m local --set repair.alternatives=2 | 2 | --set: repair.alternatives: LocalSearch has no such
solve square.tsp -m neural --set repair.alternatives=two | 2 | repair.alternatives must be a whole number, not 'two'
solve square.tsp -m neurall | 2 | --method: 'neurall' is not one of: auto, neural, paper
solve square.tsp --config none.toml | 3 | none.toml: cannot read: No such file
solve square.tsp --config prose.toml | 3 | prose.toml: not a TOML file
solve square.tsp --config good.toml | 3 | good.toml: network: the method auto has no such setting; known:
solve square.tsp --vehicles 3 | 3 | --vehicles is for a CVRP, and this is a TSP
solve square.tsp -i sweep | 3 | square.tsp: start: 'sweep' is no start of square; known: auto
solve square.tsp -i three.tour | 3 | three.tour:8: TOUR_SECTION has 3 nodes, the instance 4
solve square.tsp -m neural --set repair.model=none.safetensors | 3 | none.safetensors: cannot read
solve square.tsp -m neural --set repair.model=notes.txt | 3 | notes.txt: not usable as weights
solve square.tsp -m neural --set repair.model=huge | 3 | no weights named 'huge'
solve square.tsp -m library --set repair.name=pyvrp | 3 | square.tsp: method: pyvrp does not solve a TSP
solve square.tsp -o notes.txt/a.tour | 2 | --output: cannot write notes.txt/a.tour: Not a directory
solve square.tsp -o /proc/none/a.tour | 2 | --output: cannot write to the folder /proc/none
solve square.tsp -o folder/plan.sol | 3 | plan.sol: a solution of this TSP goes to a file that ends
solve square.tsp second.tsp -o one.tour | 2 | --output: one.tour is one file, but there are 2 inst
solve square.tsp --plot a.jpg | 2 | --plot: a.jpg is no picture; it may end in .png
solve square.tsp --trace folder | 2 | cannot write folder: Is a directory
solv square.tsp | 2 | No such command 'solv'
square.tsp | 2 | No such command 'square.tsp'
check square.tour square.tsp | 3 | square.tour:2: TYPE 'TOUR' is not solved here
check square.tsp plan.sol | 3 | plan.sol:1: a .sol file is for a CVRP, but the instance is a TSP
check square.tsp three.tour | 3 | three.tour:8: TOUR_SECTION has 3 nodes, the instance 4
check square.tsp notes.txt | 3 | notes.txt: the file's name must end in .tour
generate tsp | 2 | 'tsp' is not one of 'uniform-tsp'
generate uniform-tsp -n ten | 2 | '--nodes'
generate uniform-tsp -n 5 -o none/a.tsp | 3 | none/a.tsp: cannot be written: No such file
generate uniform-tsp -n 5 -c 3 -o a.tsp | 2 | --output: a.tsp is one file, but there are 3 instances
generate uniform-tsp -n 5 -c 3 -o notes.txt | 2 | --output: notes.txt is one file, but there are 3
generate uniform-tsp -n 5 -c 3 -o - | 2 | --count: standard output takes one instance
generate x-cvrp -n 5 --unrounded | 2 | --unrounded: x-cvrp is on a grid
plot none.tsp | 3 | none.tsp: cannot be read: No such file
plot square.tsp three.tour | 3 | three.tour:8: TOUR_SECTION has 3 nodes
plot square.tsp -o a.jpg | 3 | a.jpg: the name of this picture must end in .png
plot square.tsp --animate -o a.png | 3 | a.png: the name of this picture must end in .gif
plot --trace empty.jsonl | 3 | empty.jsonl: the trace is empty
plot --trace broken.jsonl | 3 | broken.jsonl:1: not a line of a trace
plot --training none.jsonl | 3 | none.jsonl: No such file
label -n 100 | 2 | '--count'
label -n 100 -c 0 --data labels | 2 | '--count'
label -n 100 -c 1 --data notes.txt | 2 | --data: cannot write to the folder notes.txt
train folder --data labels --out run | 3 | folder: cannot read: Is a directory
train good.toml --out run | 2 | '--data'
train good.toml --data labels --out notes.txt | 2 | --out: cannot write to the folder notes.txt
models none | 2 | none
models --model none.safetensors | 3 | none.safetensors: cannot read weights: No such file
models --model notes.txt | 3 | notes.txt: not usable as weights
models --model folder | 3 | folder: cannot read weights: Is a directory
bench tps | 2 | No such command 'tps'
bench repeat none.json | 3 | none.json: cannot read rows: No such file
bench repeat broken.jsonl | 3 | broken.jsonl:1: not a row of a benchmark
bench repeat empty.jsonl | 3 | empty.jsonl: no row in it was made with -n
bench report none.jsonl | 3 | none.jsonl: cannot read rows: No such file
bench report empty.jsonl | 3 | empty.jsonl: no rows in it
bench tsp --rows notes.txt | 2 | --rows: notes.txt is no folder
bench tsp --against glue | 3 | unknown rival 'glue'; known: fast_tsp
bench tsplib --data none | 3 | none: this folder does not exist
bench gate --baseline none.json | 3 | none.json: no baseline of the gate: No such file
warmup tps | 2 | METHOD: 'tps' is not one of: tsp, cvrp
warmup --all | 2 | No such option: --all
""".strip().splitlines()]  # fmt: skip # noqa: E501
TRAINING = [tuple(part.strip() for part in line.split("|")) for line in r"""
train key.toml --data labels --out run | 3 | key.toml: unknown key 'learning_rate'; known: labels
train depth.toml --data labels --out run | 3 | depth.toml: unknown key 'depth' of a network; known:
train prose.toml --data labels --out run | 3 | prose.toml: not a TOML file
train good.toml --data none --out run | 3 | there is no folder none with labels
train good.toml --data labels --out run | 3 | no labels tsp100-*.npz in the folder labels: it holds tsp50-seed0.npz
train good.toml --data broken --out run | 3 | broken/tsp100-seed0.npz: no shard of labels
""".strip().splitlines()]  # fmt: skip # noqa: E501


def _refused(line: str, code: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["drhg", *line.split()])
        cli._run()  # loads what is loaded on first use
        threads = threading.active_count()
        seconds = []
        for _ in range(TRIES):
            capsys.readouterr()
            began = time.thread_time()
            found = cli._run()
            seconds.append(time.thread_time() - began)
    shown = capsys.readouterr()
    assert (found, shown.out) == (int(code), ""), shown.err
    assert shown.err.startswith("drhg: ")
    assert shown.err.count("\n") == 1
    assert words in shown.err
    assert threading.active_count() == threads
    assert min(seconds) < QUICK


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("line", "code", "words"), LINES, ids=[line for line, *_ in LINES])
def test_a_wrong_command_line_is_refused_at_once(
    line: str, code: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _refused(line, code, words, capsys)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("line", "code", "words"), TRAINING, ids=[line for line, *_ in TRAINING])
def test_a_wrong_training_is_refused_at_once(
    line: str, code: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", exc_type=ImportError)
    _refused(line, code, words, capsys)


@pytest.mark.parametrize("line", [
    "solve none.tsp | 3 | drhg: none.tsp: cannot be read: No such file or directory",
    "solve square.tsp --set k | 2 | drhg: Invalid value for --set: 'k' is not KEY=VALUE",
    "bench repeat none.json | 3 | drhg: none.json: cannot read rows: No such file or directory",
    "warmup tps | 2 | drhg: Invalid value for METHOD: 'tps' is not one of: tsp, cvrp",
], ids=lambda line: line.split(" |")[0])  # fmt: skip
def test_a_wrong_command_line_as_a_user_types_it(line: str, here: Path) -> None:
    words, code, message = (part.strip() for part in line.split("|"))
    command = [sys.executable, "-m", "drhg", *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, cwd=here, timeout=120)
    assert (done.returncode, done.stdout) == (int(code), "")
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


def test_sixty_wrong_calls_at_least() -> None:
    assert len(PYTHON) == len(SOLVE) + len(FILES_AND_PROBLEMS) + len(NETWORKS)  # no name twice
    assert len(PYTHON) >= 35
    assert len({line for line, *_ in LINES}) == len(LINES) >= 25


# --- names ----------------------------------------------------------------------------------------


def test_the_package_lists_its_names() -> None:
    names = dir(drhg)
    assert set(drhg.__all__) <= set(names)
    assert {"solve", "solve_many", "read", "tsp", "cvrp", "Result", "TracePoint"} <= set(names)
    assert not [name for name in names if name.startswith("_") and name != "__version__"]
    assert all(getattr(drhg, name) is not None for name in names)
    with pytest.raises(AttributeError, match="module 'drhg' has no attribute 'solv'"):
        api.solv(TOURS)


@pytest.mark.slow
def test_a_type_checker_knows_the_names(tmp_path: Path) -> None:
    mypy = pytest.importorskip("mypy.api")
    program = tmp_path / "program.py"
    program.write_text(
        "import drhg\n"
        "from drhg import TracePoint, read, solve, solve_many, tsp, warmup\n"
        "drhg.solve(drhg.uniform_tsp(9), max_iters=1)\n"
        "drhg.solv(drhg.uniform_tsp(9), max_iters=1)\n"
    )
    package = str(Path(drhg.__file__))  # what it imports is left out: it would take a minute
    given = ["--strict", "--follow-imports=skip", "--cache-dir", str(tmp_path / "cache")]
    found, _, _ = mypy.run([*given, package, str(program)])
    errors = [line for line in found.splitlines() if "error: " in line]
    assert len(errors) == 1, found
    assert 'program.py:4: error: Module has no attribute "solv"' in errors[0]
