"""Renew the figures of golden.json: costs of its plans by the public package dp-accounting.

Run with an interpreter that has dp-accounting (0.6.0 was used); it pins old versions of its
dependencies, so give it an environment of its own.
"""

import json
from pathlib import Path

import dp_accounting as dpa
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.pld.common import DifferentialPrivacyParameters
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant

TARGET = Path(__file__).parent / "golden.json"
RELATIONS = {
    "zero_out": dpa.NeighboringRelation.ADD_OR_REMOVE_ONE,
    "replace_one": dpa.NeighboringRelation.REPLACE_ONE,
}


def poisson(rate, noise, steps):
    event = dpa.PoissonSampledDpEvent(rate, dpa.GaussianDpEvent(noise))
    return dpa.SelfComposedDpEvent(event, steps)


def renew(case, event, interval):
    relation = RELATIONS[case["adjacency"]]
    accountant = PLDAccountant(relation, value_discretization_interval=interval).compose(event)
    case["epsilons"] = [accountant.get_epsilon(delta) for delta in case["deltas"]]


if __name__ == "__main__":
    golden = json.loads(TARGET.read_text())
    for case in golden["poisson"]:
        event = poisson(case["rate"], case["noise_multiplier"], case["steps"])
        renew(case, event, 1e-5 if case["steps"] < 1000 else 2e-5)
    for case in golden["heterogeneous"]:
        noises, steps = case["noise_multipliers"], case["steps_each"]
        parts = [poisson(case["rate"], noise, steps) for noise in noises]
        renew(case, dpa.ComposedDpEvent(parts), 1e-4)
    for case in golden["response"]:
        total = pld.identity(1e-4)
        for epsilon, delta, count in case["parts"]:
            one = DifferentialPrivacyParameters(epsilon, delta)
            loss = pld.from_privacy_parameters(one, value_discretization_interval=1e-4)
            total = total.compose(loss.self_compose(count))
        case["epsilon"] = total.get_epsilon_for_delta(case["delta"])
    TARGET.write_text(json.dumps(golden, indent=1) + "\n")
