"""Methods by name, and with settings from a file or the command line."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import drhg
from drhg.session.configure import configured, merged, read_settings
from drhg.session.methods import NAMED, name_of, strategy_of

TOUR, ROUTES = drhg.uniform_tsp(9, seed=1), drhg.uniform_cvrp(9, seed=1)


def built(name: str, *changes: str, instance: drhg.Instance = TOUR) -> Any:
    return configured(name, merged({}, changes))(instance)


def test_the_paper_is_taken_to_the_letter() -> None:
    paper = drhg.Regions(
        drhg.Cluster((20, 1000), centres="grid"), drhg.Neural("paper"), drhg.Improve(),
        iterations=1000,
    )  # fmt: skip
    assert NAMED["paper"](TOUR) == paper
    routes = drhg.Cluster((20, 200), depot_edges="all")
    assert NAMED["paper"](ROUTES) == drhg.Regions(
        routes, drhg.Neural("paper"), drhg.Improve(), iterations=1000
    )


def test_settings_make_what_python_makes() -> None:
    assert built("neural", "repair.alternatives=2", instance=ROUTES) == drhg.Regions(
        repair=drhg.Neural(alternatives=2), walks=4, sharing=drhg.Sharing(every=4, least=2.5)
    )
    assert built("neural", "accept=improve", "walks=3", "sharing.every=9") == drhg.Regions(
        repair=drhg.Neural(), walks=3, sharing=drhg.Sharing(every=9, least=2.5)
    )
    assert built("local", "destroy=covering", "destroy.k=5,9", "destroy.grow=2") == drhg.Regions(
        drhg.Covering((5, 9), grow=2.0)
    )
    assert built("local", "accept=anneal", "accept.start=0.5").accept == drhg.Anneal(0.5)
    operators = built("local", "destroy=adaptive", "destroy.operators=cluster,strings",
                      instance=ROUTES).destroy.operators  # fmt: skip
    assert operators == (drhg.Cluster(), drhg.Strings())
    assert built("hybrid", "repair.first=insertion").repair == drhg.Hybrid(drhg.Insertion())


def test_settings_of_the_destroy_change_the_one_that_suits_the_repair() -> None:
    assert built("library", "destroy.choices=3").destroy == drhg.Covering((200, 800), choices=3)
    k = built("library", "destroy.k=5,9", instance=ROUTES).destroy
    assert k == drhg.WholeRoutes((5, 9))


def test_a_file_and_the_command_line_add_up(tmp_path: Path) -> None:
    path = tmp_path / "method.toml"
    path.write_text("[destroy]\noperator = 'covering'\nk = [5, 9]\n[accept]\noperator = 'anneal'\n")
    settings = merged(read_settings(path), ["destroy.k=6,8", "accept.end=0.1"])
    assert configured("local", settings)(TOUR) == drhg.Regions(
        drhg.Covering((6, 8)), accept=drhg.Anneal(0.2, 0.1)
    )


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("local", "k", "'k' is not KEY=VALUE"),
        ("local", "a..b=3", "is not KEY=VALUE"),
        ("local", "destry.k=3", "^destry: Regions has no such setting; known: destroy, repair"),
        ("local", "destroy.kk=3", "^destroy.kk: Cluster has no such setting; known: k, centres"),
        ("local", "destroy.k=3", r"^destroy.k must be a list, such as \[20, 100\], not 3"),
        ("local", "destroy.k=3,x", "^destroy.k must be a whole number, not 'x'"),
        ("local", "destroy.k=9,3", "^destroy.k must be two numbers"),
        ("local", "destroy.reach=inf", "^destroy.reach must be finite"),
        ("local", "destroy.reach=2.5", "^destroy.reach must be a whole number, not 2.5"),
        ("local", "destroy=glue", "^destroy: unknown operator 'glue'; known: cluster, covering"),
        ("local", "accept=anneal,improve", "^accept: unknown operator"),
        ("neural", "accept.start=hot", "^accept.start must be a number, not 'hot'"),
        ("neural", "accept.start=-1", "^accept.start must be above 0"),
        ("neural", "repair.sample=1", "^repair.sample must be true or false, not 1"),
        ("neural", "repair.model=3", "^repair.model must be text, not 3"),
        ("library", "repair.seconds=no", "^repair.seconds must be a finite number, not 'no'"),
        ("auto", "destroy.k=3,9", r"^destroy: the method auto has no such .*genetic.*\(Routes\)"),
        ("auto", "genetic.target_feasible=2", "^genetic.target_feasible must be at most 1, not 2"),
        ("glue", "k=3", "^method: unknown name 'glue'; known: auto"),
    ],
)
def test_a_wrong_setting_is_named(name: str, change: str, words: str) -> None:
    with pytest.raises(drhg.DrhgError, match=words):
        built(name, change)


def test_settings_of_the_default_are_those_of_its_kind_of_problem() -> None:
    method = configured("auto", merged({}, ["genetic.target_feasible=0.3"]))
    assert method(TOUR) == drhg.Tours()
    assert method(ROUTES) == drhg.Routes(genetic=drhg.GeneticParams(target_feasible=0.3))


def test_a_method_can_be_a_function_of_the_instance() -> None:
    def by_size(instance: drhg.Instance) -> drhg.Strategy:
        return drhg.Regions(drhg.Cluster((3, 6))) if instance.n < 10 else drhg.Tours()

    assert strategy_of(by_size, TOUR) == drhg.Regions(drhg.Cluster((3, 6)))
    result = drhg.solve(TOUR, method=by_size, max_iters=5)
    assert (result.iterations, result.method) == (5, "by_size")
    named = configured("local", {})
    assert name_of(named) == "local"
    assert pickle.loads(pickle.dumps(named)) == named
