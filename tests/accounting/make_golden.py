"""Write golden.json: costs of plans by the public package dp-accounting.

Run with an interpreter that has dp-accounting (0.6.0 was used); it pins old versions of its
dependencies, so give it an environment of its own:

    python tests/accounting/make_golden.py --overwrite
"""

import argparse
import itertools
import json
from pathlib import Path

import dp_accounting as dpa
import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.common import DifferentialPrivacyParameters
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

HERE = Path(__file__).parent
RELATIONS = {
    "zero_out": dpa.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace_one": dpa.NeighboringRelation.REPLACE_ONE,
}


def pld_epsilon(event, relation, deltas, interval):
    accountant = PLDAccountant(RELATIONS[relation], value_discretization_interval=interval)
    accountant.compose(event)
    return [accountant.get_epsilon(delta) for delta in deltas]


def poisson(rate, noise, steps):
    event = dpa.PoissonSampledDpEvent(rate, dpa.GaussianDpEvent(noise))
    return dpa.SelfComposedDpEvent(event, steps)


def poisson_cases():
    grid = itertools.product((0.001, 0.01, 0.1, 0.5), (0.7, 1.0, 2.0, 5.0), (1, 30, 1000))
    for rate, noise, steps in grid:
        if rate == 0.5 and steps == 1000:
            continue
        for relation in RELATIONS:
            deltas = [1e-5, 1e-8]
            interval = 1e-5 if steps < 1000 else 2e-5
            yield {
                "rate": rate,
                "noise_multiplier": noise,
                "steps": steps,
                "adjacency": relation,
                "deltas": deltas,
                "epsilons": pld_epsilon(poisson(rate, noise, steps), relation, deltas, interval),
            }


def heterogeneous_cases():
    for relation in RELATIONS:
        noises = np.linspace(1.0, 3.0, 12).tolist()
        event = dpa.ComposedDpEvent([poisson(0.05, noise, 4) for noise in noises])
        yield {
            "rate": 0.05,
            "noise_multipliers": noises,
            "steps_each": 4,
            "adjacency": relation,
            "deltas": [1e-5],
            "epsilons": pld_epsilon(event, relation, [1e-5], 1e-4),
        }


def response_cases():
    for parts in ([(0.1, 0.0, 10), (0.3, 1e-7, 5)], [(1.0, 1e-6, 3)], [(0.02, 0.0, 400)]):
        total = pld.identity(1e-4)
        for epsilon, delta, count in parts:
            one = pld.from_privacy_parameters(
                DifferentialPrivacyParameters(epsilon, delta), value_discretization_interval=1e-4
            )
            total = total.compose(one.self_compose(count))
        yield {"parts": parts, "delta": 1e-5, "epsilon": total.get_epsilon_for_delta(1e-5)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--overwrite", action="store_true")
    target = HERE / "golden.json"
    if target.exists() and not parser.parse_args().overwrite:
        raise SystemExit(f"{target} exists; pass --overwrite to replace it.")
    golden = {
        "poisson": list(poisson_cases()),
        "heterogeneous": list(heterogeneous_cases()),
        "response": list(response_cases()),
    }
    target.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
