"""What requests and answers look like; the OpenAPI description is made of these."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from drhg.service.film import REPAIRERS
from drhg.service.limits import METHODS

SQUARE: Any = {
    "format": "drhg-instance", "name": "square",
    "xy": [[0, 0], [0, 3], [4, 3], [4, 0], [2, 1]],
}  # fmt: skip
STOPS = "name,x,y,demand\ndepot,0,0,0\nmill,2,3,4\nford,5,1,3\ninn,1,6,5\n"

PLACES = "name,x,y\nmill,2,3\nford,5,1\ninn,1,6\n"

Cost: TypeAlias = int | float
Whole: TypeAlias = Annotated[int, Field(ge=0, lt=2**53)]
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
Method: TypeAlias = Literal[METHODS]  # type: ignore[valid-type]
Repairer: TypeAlias = Literal[REPAIRERS]  # type: ignore[valid-type]
GivenInstance: TypeAlias = Annotated[
    str | dict[str, Any],
    Field(
        description="The text of a file (TSPLIB, CVRPLIB, CSV with a header, GeoJSON, JSON), or an "
        "object with `format` `drhg-instance`.",
        examples=[STOPS, SQUARE],
    ),
]
GivenSolution: TypeAlias = Annotated[
    str | dict[str, Any],
    Field(
        description="The text of a .tour, .sol, .csv or .json file, or an object with `tour` or "
        "`routes`; nodes count from 0 in JSON.",
        examples=[{"tour": [0, 1, 2, 3, 4]}],
    ),
]


class Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Table(Asked):
    """What a table of stops (CSV) leaves open."""

    capacity: Finite | None = Field(default=None, description="Of every vehicle.")
    vehicles: Annotated[int, Field(ge=1, lt=2**31)] | None = Field(
        default=None, description="At most."
    )
    max_distance: Finite | None = Field(default=None, description="Of a route.")
    max_duration: Finite | None = Field(
        default=None, description="Of a route, in its unit of time."
    )
    returns: bool | None = Field(default=None, description="False: routes end at their last stop.")
    speed: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, description="In km/h, for times from distances."
    )
    depot: str | None = Field(
        default=None, description="The name of a stop; by default the first row."
    )
    columns: dict[str, str] | None = Field(
        default=None, description="Headings by meaning: name, lat, lon, x, y, demand, service."
    )


class InstanceRequest(Asked):
    """An instance."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"instance": SQUARE},
                                        {"instance": STOPS, "table": {"capacity": 8}}]},
    )  # fmt: skip
    instance: GivenInstance
    name: str | None = Field(default=None, max_length=200,
        description="Name of the file that the text is from; its ending tells the format.",
        examples=["stops.csv"],
    )  # fmt: skip
    table: Table = Field(default_factory=lambda: Table(), description="For a CSV.")


class SolveRequest(InstanceRequest):
    """An instance, and how to solve it."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"instance": SQUARE, "iterations": 100},
                {"instance": STOPS, "table": {"capacity": 8}, "method": "local", "seconds": 0.2},
            ]
        },
    )
    method: Method = "auto"
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None, description="Time limit. At most, and by default, what `GET /limits` says."
    )
    iterations: Whole | None = None
    no_improve: Whole | None = Field(
        default=None, description="Iterations in a row without a gain."
    )
    target: Finite | None = Field(default=None, description="A cost at which to stop.")
    seed: Whole = 0
    start: GivenSolution | None = Field(default=None, description="A first solution to improve.")


class CheckRequest(InstanceRequest):
    """An instance and a solution of it."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [
            {"instance": SQUARE, "solution": {"tour": [0, 1, 2, 3, 4]}},
        ]},
    )  # fmt: skip
    solution: GivenSolution


class StepRequest(InstanceRequest):
    """One step of destroy and repair."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"instance": SQUARE, "k": 3}]},
    )
    solution: GivenSolution | None = Field(
        default=None, description="To start from; else a first one."
    )
    repair: Repairer = "local"
    k: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        default=None, description="Nodes to destroy."
    )
    candidates: Annotated[int, Field(ge=1, le=64)] = Field(
        default=1, description="Regions tried, of which the step that gains most is shown."
    )
    seed: Whole = 0


class ExplainRequest(InstanceRequest):
    """An instance and a solution of it; without one, why there may be none."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"instance": SQUARE, "solution": {"tour": [0, 1, 2, 4, 3]}, "region": 4}]
        },
    )
    solution: GivenSolution | None = None
    region: Annotated[int, Field(ge=0, le=12)] = Field(
        default=0, description="Size of the regions that are searched exhaustively; 0 for none."
    )
    top: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Only so many stops and edges, the dearest first."
    )


class ReplanRequest(InstanceRequest):
    """A problem that has changed, and the plan that was."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"instance": STOPS, "table": {"capacity": 8}, "old": {"routes": [[1], [3]]}}
            ]
        },
    )
    old: GivenSolution
    old_instance: GivenInstance | None = Field(
        default=None, description="The problem that was, for stops that moved; `table` fits both."
    )
    lost: list[Whole] = Field(
        default_factory=list, max_length=1000, description="Vehicles that are gone, from 1."
    )
    stability: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        default=0.0, description="What a customer with another vehicle or predecessor costs."
    )
    seconds: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] | None = Field(
        default=None, description="To improve the surroundings; by default about a tenth of one."
    )
    seed: Whole = 0


class StartedRequest(Asked):
    """A solve that was started, by the id that `start` returned."""

    id: str


class About(BaseModel):
    """An instance in short."""

    name: str
    problem: str = Field(description="tsp, atsp, cvrp, vrptw: the kind, for people.")
    n: int = Field(description="Nodes, the depot included.")


class Drawing(About):
    """An instance as one draws it."""

    x: list[float] | None = Field(description="East; null where no coordinates are known.")
    y: list[float] | None = Field(description="North.")
    depot: int | None
    demand: list[float] | None
    capacity: float | None
    names: list[str] | None
    integral: bool = Field(description="Whether costs are whole numbers.")
    returns: bool = Field(description="Whether routes end where they began.")
    windows: list[tuple[float, float | None]] | None = Field(
        description="When service may begin at each node; null: at any later time."
    )
    clock: bool = Field(description="Whether times are seconds since midnight, not just numbers.")
    methods: list[str] = Field(description="Those that can solve it.")


class Best(BaseModel):
    """The best solution so far."""

    cost: Cost
    seconds: float = Field(description="When it was found, from the start of the search.")
    iterations: int
    tour: list[int] | None = Field(default=None, description="Of a TSP: nodes from 0.")
    routes: list[list[int]] | None = Field(
        default=None, description="Of a CVRP, without the depot."
    )
    vehicles: list[int] | None = Field(
        default=None, description="Who drives each route, where vehicles differ; from 1."
    )


class RouteShown(BaseModel):
    """A route in one line."""

    route: int = Field(description="From 1.")
    stops: int
    load: float
    distance: float = Field(description="Back to the depot, or the first stop, included.")
    first: str
    last: str
    duration: float | None = Field(
        default=None, description="Travel, service and waiting, where times are known."
    )
    nodes: tuple[int, int] = Field(description="The first and the last stop, from 0.")
    arrivals: list[float] | None = Field(
        default=None, description="When each stop is reached, in the order of the route."
    )
    vehicle: str | None = Field(default=None, description="Its name, where vehicles differ.")


class Outcome(BaseModel):
    """How a search ended."""

    status: str = Field(description="target, time, iterations, no_improve, interrupted, memory, "
                        "infeasible or no_search")  # fmt: skip
    seconds: float
    compile_seconds: float
    iterations: int
    unplaced: list[int] = Field(description="Customers that no feasible solution was found for.")
    warnings: list[str]


class Problem(BaseModel):
    """An error as RFC 9457 has it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:drhg:problem:InstanceError", "title": "The instance is not valid",
                    "status": 422, "detail": "instance:3: 2 cells, but the header names 4 columns",
                    "line": 3,
                }
            ]
        }
    )  # fmt: skip
    type: str
    title: str
    status: int
    detail: str
    line: int | None = Field(default=None, description="Of the instance or the solution.")
    errors: list[dict[str, Any]] | None = Field(default=None, description="All wrong fields.")


class SolveState(BaseModel):
    """A solve: where it is, and the best so far."""

    id: str
    state: Literal["queued", "running", "finished", "stopped", "interrupted", "failed"]
    instance: About
    method: str
    seed: int
    seconds: float = Field(description="Its time limit.")
    created: float = Field(description="Unix time.")
    ahead: int | None = Field(description="Solves that wait before it, while it is queued.")
    best: Best | None
    result: Outcome | None
    problem: Problem | None = Field(description="Why it failed.")
    trace: list[tuple[float, Cost]] = Field(description="Seconds and cost of the improvements.")
    files: dict[str, str] = Field(description="Where to download the best, by suffix.")


class Verdict(BaseModel):
    """What the independent checker says."""

    valid: bool
    cost: Cost | None = Field(description="null if nodes do not exist")
    violations: list[str]


class Stage(BaseModel):
    """A solution before or after a step."""

    cost: Cost
    routes: list[list[int]]


Pairs: TypeAlias = list[list[int]]


class Film(BaseModel):
    """A step of destroy and repair, stage by stage; edges are pairs of nodes."""

    before: Stage
    destroyed: list[int]
    cut: Pairs
    isolated: list[int] = Field(description="Nodes with both edges cut.")
    pieces: list[list[int]] = Field(description="Hyper-edges and stubs: their nodes in order.")
    reduced_nodes: int
    repair: Pairs = Field(description="The edges that reconnect the pieces.")
    after: Stage
    added: Pairs
    removed: Pairs
    change: float
    accepted: bool


class Health(BaseModel):
    status: Literal["ready", "warming"]
    workers: int
    ready: int = Field(description="Workers with all kernels loaded.")
    version: str


class LimitsShown(BaseModel):
    nodes: int
    seconds: float
    default_seconds: float
    body: int = Field(description="Bytes of a request.")
    queue: int
    workers: int
    keep_seconds: float = Field(description="How long results are kept.")
    keep_results: int
    store: bool = Field(description="Whether results survive a restart.")
    methods: list[str]
