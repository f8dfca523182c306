"""Use every kernel that explains plans once on tiny ones, to have it compiled or loaded."""

from __future__ import annotations

import numpy as np

from drhg.hypergraph import Nearness
from drhg.plans.certificate import certificate
from drhg.plans.conflicts import find_conflict
from drhg.plans.places import flaws_of, layout_of, places_of
from drhg.plans.terms import terms_of
from drhg.problem import Metric, Solution, cvrp, tsp


def rehearse_explaining() -> None:
    """Places, certificates and conflicts, for a tour and for a plan."""
    xy = np.random.default_rng(0).random((7, 2)) * 9.0
    order = np.arange(1, 7)
    demand = np.array([0, 1, 1, 1, 1, 1, 1])
    plan = cvrp(xy, demand, 4, max_distance=100.0, vehicles=6, metric=Metric.EUC_2D)
    find_conflict(plan)
    for instance, solution in (
        (plan, Solution([order[:3], order[3:]])),
        (tsp(xy), Solution([np.arange(7)])),
    ):
        terms = terms_of(instance)
        layout = layout_of(terms, solution)
        flaws_of(terms, layout)
        places_of(terms, layout, layout.order[:1], np.zeros(1, np.int32))
        certificate(instance, solution, 6)
        Nearness(instance).around([1], 2)
