"""The Python interface in one page: build or read a problem, solve it, check it, draw it."""

from __future__ import annotations

import drhg

# a thousand random cities; drhg.read("berlin52.tsp") reads a TSPLIB file instead
cities = drhg.uniform_tsp(1000, seed=1)
result = drhg.solve(cities, time_limit=5, seed=1)
print(f"{cities.name}: cost {result.cost:.4f} after {result.iterations:,} iterations")
assert drhg.check(result.instance, result.solution) == []

# deliveries: coordinates, demands, capacity; the first node is the depot
deliveries = drhg.cvrp(
    [[0, 0], [0, 4], [3, 4], [3, 0], [-3, 1]], demand=[0, 2, 3, 2, 4], capacity=5, name="deliveries"
)
plan = drhg.solve(deliveries, max_iters=200)
for number, route in enumerate(plan.solution.routes, start=1):
    print(f"route {number}: depot -> {' -> '.join(map(str, route))} -> depot")
drhg.write_solution("deliveries.sol", plan.instance, plan.solution)

# go on from a solution, watch it improve, stop when good enough
drhg.solve(
    cities,
    start=result.solution,
    target=result.cost * 0.999,
    time_limit=5,
    on_improve=lambda point, solution: print(f"{point.seconds:5.1f} s  {point.cost:.4f}"),
)
