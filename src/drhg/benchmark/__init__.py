"""Benchmarks: the paper's tables by one command each, beside other solvers on the same machine.

A suite is a list of jobs (an instance and a solver); a job becomes one row of JSON; rows become
RESULTS.md. Nothing here is needed to solve a problem.
"""

from __future__ import annotations

# Here, where nothing heavy is imported, because `--help` shows them.
TITLES = {
    "tsp": "Uniform tours of 100 to 10,000 nodes (Table 1).",
    "equal-time": "Rivals given the same 0.1, 1, 5 and 20 seconds (Table 2).",
    "short-times": "Uniform tours of 100 to 5,000 nodes in 0.1, 0.3 and 1 second.",
    "cvrp": "Uniform plans of 100 to 1,000 customers (Table 3).",
    "tsplib": "The paper's 77 TSPLIB instances (Tables 4, 6, 7).",
    "atsp": "TSPLIB's 19 tours whose distances depend on the direction.",
    "cvrplib": "CVRPLIB sets A, B, E, F, M, P and X (Table 5).",
    "train-size": "Networks trained on graphs of other sizes (Table 8).",
    "destroy-degree": "More or fewer nodes destroyed at a time (Table 9).",
    "non-optimal": "How often TSP100 ends above the best known (Figure 3).",
    "sizes": "Uniform tours of 100 to a million nodes, plans of 5,000 and 10,000 customers.",
    "fleet": "CVRPLIB sets A, B, E, F, M and P with the fleet that their names give.",
    "vrptw": "Time windows: Solomon's kinds of 100 and 200, Gehring-Homberger of 1,000 customers.",
    "tour-methods": "Every way to search for a tour, at equal time.",
    "route-methods": "Every way to search for routes, at equal time.",
}
RATES = ("tours", "routes", "regions", "networks")  # of `drhg bench rates`
