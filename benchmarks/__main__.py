"""Run benchmarks: `python -m benchmarks utility`, `python -m benchmarks speed`."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import speed, utility

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="*", help="utility [DATA SET ...] or speed")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 0.3, 1.0, 3.0, 10.0])
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--smoke", action="store_true", help="everything once, small, kept nowhere")
    arguments = parser.parse_args()
    if arguments.smoke:
        smoke = Path("/dev/null")
        utility.run(smoke, "smoke", ["breast_cancer", "diabetes"], [1.0], 1e-6, runs=2)
        speed.run(None, "smoke", smoke=True)
        return
    kind, *names = arguments.what or ["utility"]
    command = "python -m benchmarks " + " ".join([kind, *names])
    if kind == "speed":
        speed.run(RESULTS / "speed.csv", command, smoke=False)
    elif kind == "utility":
        command += f" --runs {arguments.runs} --delta {arguments.delta:g} --epsilon "
        command += " ".join(f"{epsilon:g}" for epsilon in arguments.epsilon)
        target = RESULTS / ("utility.csv" if not names else f"utility_{'_'.join(names)}.csv")
        utility.run(target, command, names, arguments.epsilon, arguments.delta, arguments.runs)
    else:
        parser.error(f"unknown benchmark {kind!r}; known: utility, speed")


if __name__ == "__main__":
    main()
