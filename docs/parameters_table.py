"""Write the table of the solvers' hyperparameters on estimators, as reStructuredText.

    python docs/parameters_table.py > docs/reference/parameters_table.inc

Rows follow from `skdp._fitting.parameters.PARAMETERS`, solvers from their registry, and the values
of "auto" from fits of two shapes that are resolved without rows.
"""

import inspect

import skdp
from skdp._fitting.parameters import PARAMETERS
from skdp.linear_model.base import HANDED_ON
from skdp.solvers.base import menu

SHAPE = 10_000, 20
MODELS = {"regression": skdp.DPRidge(), "two classes": skdp.DPLogisticRegression()}
HEAD = """.. list-table:: Hyperparameters of solvers; "auto" at epsilon 1, {} rows, {} columns
   :header-rows: 1
   :widths: 14 12 44 15 15

   * - parameter
     - default
     - solvers that have it
     - "auto": regression
     - "auto": two classes"""


def shown(value):
    """Return a value in a cell: numbers with three digits, words in quotes."""
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def default_of(name):
    """Return the default of a parameter, the same for all estimators that have it."""
    given = inspect.signature(skdp.DPRidge).parameters
    return shown(given[name].default) if name in given else ""


def automatic(name, solver):
    """Return the value of a hyperparameter after "auto" was resolved."""
    known = solver.get_params(deep=False)
    return shown(known[name]) if name in known else "not used"


def main():
    """Print the table."""
    solvers = {title: model._prepare(*SHAPE).solver for title, model in MODELS.items()}
    print(HEAD.format(*SHAPE))
    for name in PARAMETERS:
        if name == "solver":
            takes, values = "", [f'"{solver.name}"' for solver in solvers.values()]
        elif name in HANDED_ON:
            known = {one: skdp.solvers.get_solver(one).get_params(deep=False) for one in menu()}
            takes = ", ".join(one for one, given in known.items() if name in given)
            values = [automatic(name, solver) for solver in solvers.values()]
        else:
            continue
        for start, cell in zip("*    ", [name, default_of(name), takes, *values], strict=True):
            print(f"   {start} - {cell}".rstrip())


if __name__ == "__main__":
    main()
