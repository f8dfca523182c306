"""The commands about networks: `drhg label | train | models | import-weights`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drhg.cli.help_pages import App, epilog
from drhg.cli.report import print_table, say
from drhg.cli.shell import BAD_INPUT, OK, STOP, Format, blaming
from drhg.cli.targets import try_file, try_folder
from drhg.errors import DrhgError, ModelError
from drhg.parallel import cores

if TYPE_CHECKING:
    from drhg.network.weights import Weights

app = App()

Threads = Annotated[
    int | None, typer.Option("--threads", min=1, metavar="N", help="By default all cores.")
]


@app.command(
    epilog=epilog(
        [
            ("drhg label -n 100 -c 100000 --data labels", "five shards, 17 minutes on two cores"),
            ("drhg label -n 1000 -c 500 --data labels", "about 5 s per instance and core"),
            ("drhg label -n 100 -c 5000 --routes --data labels", "CVRPs, 1 s each"),
            ("drhg label -n 100 -c 100000 --data labels --ray auto", "on a Ray cluster"),
        ],
        "Run it again to go on where it stopped, or with a larger --count to get more.",
    )
)
def label(
    n: Annotated[
        int, typer.Option("-n", "--nodes", min=5, metavar="N", help="Nodes per instance.")
    ],
    count: Annotated[
        int, typer.Option("-c", "--count", min=1, metavar="N", help="How many instances.")
    ],
    data: Annotated[Path, typer.Option("--data", metavar="FOLDER", help="For the shards.")],
    routes: Annotated[bool, typer.Option("--routes", help="CVRPs of n customers.")] = False,
    seed: Annotated[
        int, typer.Option("-s", "--seed", min=0, metavar="N", help="Of the first shard.")
    ] = 0,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", min=0.001, metavar="SECONDS",
                     help="Per instance; by default enough for its size."),
    ] = None,
    threads: Threads = None,
    ray: Annotated[
        str | None,
        typer.Option("--ray", metavar="ADDRESS|local", help="On a Ray cluster (extra `ray`)."),
    ] = None,
) -> None:  # fmt: skip
    """Label uniform random instances with near-optimal tours or routes, to learn from."""
    try_folder(data, "--data")
    with STOP.patient(), blaming(data):
        from drhg.training.labels import label

        for path in label(
            data, n, count, routes=routes, seed=seed, seconds=seconds, workers=threads or cores(),
            ray=ray, report=say, should_stop=STOP.requested,
        ):  # fmt: skip
            print(path)
    raise typer.Exit(STOP.exit_code)


@app.command(
    epilog=epilog(
        [
            ("drhg train economy --data labels --out run", "until Ctrl-C"),
            ("drhg train economy --data labels --out run --resume", "go on"),
            ("drhg train ... --resume --decay", "make weights to release"),
            ("drhg plot --training run/log.jsonl -o curve.png", "the curve"),
            ("torchrun --nproc-per-node 2 -m drhg train ...", "two processes or GPUs"),
        ],
        "Ctrl-C and SIGTERM save a checkpoint and end the run; so does any limit.\n"
        "A run that was killed goes on from its last checkpoint, bit by bit the same on a CPU.\n"
        "Weights for `drhg solve --model` are in FOLDER/weights.safetensors.",
    )
)
def train(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="economy, paper, ..., or a TOML file.")
    ],
    data: Annotated[Path, typer.Option("--data", metavar="FOLDER", help="Shards of labels.")],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="For log and checkpoints.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the run stopped.")] = False,
    decay: Annotated[
        bool, typer.Option("--decay", help="Bring the rate to zero, then stop.")
    ] = False,
    init: Annotated[
        str | None,
        typer.Option("--init", metavar="NAME|FILE", help="Weights to start from."),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option("--minutes", min=0, metavar="M",
                     help="Stop after so many minutes of this call, by the clock, but without "
                          "loading and validation; with --resume, earlier calls do not count."),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option("--steps", min=0, metavar="N",
                     help="Stop at this step; with --resume, earlier calls do count."),
    ] = None,
    threads: Threads = None,
    device: Annotated[
        str, typer.Option("--device", metavar="cpu|cuda", help="Where the network is.")
    ] = "cpu",
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write events for TensorBoard.")
    ] = False,
) -> None:  # fmt: skip
    """Train a network that repairs, from labels."""
    try_folder(out, "--out")
    from drhg.training.recipe import find, read_recipe

    with blaming(Path(recipe)):
        found = read_recipe(find(recipe))  # before torch is loaded, which takes seconds
    with STOP.patient(), blaming(Path(recipe)):
        _run().train(
            found, data, out,
            resume=resume, decay=decay, init=init, minutes=minutes, steps=steps,
            threads=threads or cores(), device=device, tensorboard=tensorboard,
            should_stop=STOP.requested, report=_show,
        )  # fmt: skip
    raise typer.Exit(STOP.exit_code)


def _run() -> Any:
    """The training loop, which cannot do without torch."""
    try:
        from drhg.training import run
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "torch":
            raise
        raise ModelError(
            "training needs torch: install the extra `train` (pip install '.[train]' in a "
            "checkout of drhg)"
        ) from None
    return run


def _show(entry: dict[str, Any]) -> None:
    """A line of the log for people: all of it after a validation, else how it goes."""
    parts = [f"step {entry['step']:,}", f"loss {entry['loss']:.4f}"]
    parts += [f"{entry['per_second']:,.0f} decisions/s"]
    gaps = [f"{key} {value:.2f} %" for key, value in entry.items() if key.startswith("gap")]
    say(", ".join(parts + gaps))


@app.command(
    epilog=epilog(
        [
            ("drhg models", "what is in the box, every file verified"),
            ("drhg models --model run/weights.safetensors", "verify one's own"),
            ("drhg models -f json", "with the whole model cards"),
        ]
    )
)
def models(
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="NAME|FILE", help="Only these weights."),
    ] = None,
    format: Annotated[
        Format,
        typer.Option("-f", "--format", metavar="table|json", help="How to print the list."),
    ] = Format.table,
) -> None:
    """List weights and verify them: hashes, shapes, numbers."""
    from drhg.network import weights

    with blaming(weights.FOLDER):
        names = sorted(weights.manifest()) if model is None else [model]
    found: list[dict[str, Any]] = []
    failed = False
    for name in names:
        try:
            found.append(_row(weights.load(name)))
        except DrhgError as error:
            failed = True
            say(str(error))
    if format is Format.json:
        for row in found:
            print(json.dumps(row))
    elif found:
        headings = ["name", "problem", "network", "parameters", "k", "gaps", "sha256"]
        least = ("sha256", "network", "parameters", "gaps")
        print_table(headings, [_cells(row) for row in found], least)
    raise typer.Exit(BAD_INPUT if failed else OK)


@app.command(
    name="import-weights",
    epilog=epilog(
        [
            ("drhg import-weights checkpoint-100.pt theirs.safetensors", "the paper's, for tours"),
            ("drhg solve a.tsp -m neural --set repair.model=theirs.safetensors", "solve with it"),
        ],
        "Nothing in the file is executed, and torch is not needed to read it. Known are the\n"
        "network for tours of the paper's public code, and the state dict of our own `paper`;\n"
        "the public code's network for routes is not known here, and refused.",
    ),
)
def import_weights(
    file: Annotated[Path, typer.Argument(metavar="FILE.pt", help="A checkpoint of torch.")],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="Weights to write (.safetensors).")],
) -> None:
    """Take over a checkpoint of the paper's network as weights."""
    from drhg.network import weights
    from drhg.network.torch_file import paper_weights, read_state_dict

    try_file(output, "OUT")
    with blaming(file):
        config, tensors = paper_weights(read_state_dict(file))
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        card = {"data": f"imported from {file.name}, sha256 {digest}", "k": [20, 1000]}
    with blaming(output):
        weights.write_weights(output, config, tensors, card)
    say(f"{output}: {config.layers} layers, {sum(t.size for t in tensors.values()):,} parameters")


def _row(found: Weights) -> dict[str, Any]:
    return {
        "name": found.name,
        "problem": "cvrp" if found.config.routes else "tsp",
        "network": found.config.preset,
        "parameters": found.parameters,
        "k": list(found.k),
        "gaps": found.card.get("gaps", {}),
        "bytes": found.bytes,
        "sha256": found.sha256,
        "card": found.card,
    }


def _cells(row: dict[str, Any]) -> list[str]:
    low, high = row["k"]
    gaps = ", ".join(f"{name}: {gap:g} %" for name, gap in row["gaps"].items())
    of = [row[heading] for heading in ("name", "problem", "network")]
    return [*of, f"{row['parameters']:,}", f"{low}-{high}", gaps, f"{row['sha256'][:12]} ok"]
