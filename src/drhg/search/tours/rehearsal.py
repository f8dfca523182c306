"""Every kernel of the search for tours used once on a tiny problem, to be compiled or loaded."""

from __future__ import annotations

import numpy as np

from drhg.construct.starts import shaken_greedy
from drhg.kernels.random import random_state
from drhg.problem import Instance, Solution
from drhg.problem.generate import as_matrix, uniform_tsp
from drhg.search.strategy import Budget, InThisThread, task_of
from drhg.search.tours.edge_assembly import Pairs, count_edges, crossing_of
from drhg.search.tours.kicks import kick_copies, kick_regions
from drhg.search.tours.params import KickParams, MoveParams
from drhg.search.tours.population import TourPopulation
from drhg.search.tours.tour import Subject, subject_of


def _subject(instance: Instance) -> Subject:
    return subject_of(task_of(instance, Solution([np.arange(instance.n)]), 0, 1), MoveParams())


def rehearse_moves() -> None:
    """k-opt moves and kicks on a whole tour."""
    subject = _subject(as_matrix(uniform_tsp(20)))  # scipy is not needed
    tour = subject.local_optimum(np.arange(20))
    next(kick_copies(subject, tour, KickParams(), InThisThread(), Budget(each=2)))


def rehearse_regions() -> None:
    """The same on regions of a large tour."""
    subject = _subject(uniform_tsp(20))
    next(kick_regions(subject, subject.local_optimum(np.arange(20)), KickParams(), InThisThread()))


def _population(subject: Subject) -> TourPopulation:
    population = TourPopulation(subject, 2)
    rng = np.random.default_rng(0)
    for row in range(2):
        population.set_tour(row, rng.permutation(20).astype(np.int32))
    return population


def rehearse_crossing() -> None:
    """Edge assembly."""
    population = _population(_subject(as_matrix(uniform_tsp(20))))
    guests = population.arrays.links[[0]]
    pairs = Pairs(np.array([0]), np.array([1]), guests, np.empty(1))
    population.cross(pairs, crossing_of(20), 1, True, random_state(0))


def rehearse_population() -> None:
    """What else a population needs: its first tours, and how often it has each edge."""
    subject = _subject(as_matrix(uniform_tsp(20)))
    count_edges(subject.context.near, _population(subject).arrays)
    near = subject.context.near.astype(np.int64)
    shaken_greedy(subject.task.instance, near)(np.random.default_rng(0))
