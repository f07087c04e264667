"""Run benchmarks."""

from __future__ import annotations

import argparse
import importlib
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from benchmarks import registry, results_file
from benchmarks.held_out_sets import HALVES

RESULTS = Path(__file__).parent / "results"


def given(options: argparse.Namespace, *names: str) -> dict:
    """Values of options that were given; for others a benchmark has its defaults."""
    found = {name: getattr(options, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def accuracy(module, names, options) -> None:
    """Run, unless the file is to be read, and print the summary."""
    from benchmarks import verdict

    half = {"half": options.half} if module.__name__.endswith("held_out") else {}
    terms = given(options, "epsilons", "delta", "conditions", "runs", "jobs")
    rows = verdict.read(options.output, **half) if options.verdict else module.run(
        options.output, options.command, names, options.methods, **half, **terms
    )  # fmt: skip
    print(*verdict.report(rows), sep="\n")


def cases(module, names, options) -> None:
    """Run cases, or read the file, and say what came out; fail if a cell got worse."""
    from benchmarks.utility import DELTA

    before = module.read(options.before)[1] if options.before else []
    rows = module.read(options.output)[1]
    if not options.verdict:
        rows = module.run(
            options.output, options.command, names, options.epsilons or module.EPSILONS,
            DELTA if options.delta is None else options.delta, options.runs, options.jobs,
        )  # fmt: skip
    print(*module.report(rows, before), sep="\n")
    if any(module.worse(before, rows)):
        raise SystemExit(1)


def inference(module, names, options) -> None:
    """Run a part of the benchmark of intervals, or say what its file says."""
    from benchmarks import inference_peers, inference_real

    parts = {
        "": lambda *given: module.run(*given, module.cells()),
        "links": lambda *given: module.run(*given, [*module.link_cells(), *module.class_cells()]),
        "real": inference_real.run,
        "peers": inference_peers.run,
    }
    name = "_".join(names)
    if name not in parts:
        raise SystemExit(f"inference has the parts {', '.join(filter(None, parts))}")
    output = options.output or RESULTS / f"{'_'.join(['inference', *names])}.csv"
    if options.verdict:
        print(*module.verdict(output), sep="\n")
    else:
        parts[name](output, options.command, options.runs)


def scores(module, names, options) -> None:
    """Run, unless the file is to be read, and say what came out."""
    if not options.verdict:
        epsilons = options.epsilons or module.EPSILONS
        module.run(options.output, options.command, options.runs, epsilons, names)
    print(*module.verdict(options.output), sep="\n")


def counts(module, names, options) -> None:
    terms = given(options, "epsilons", "runs", "jobs", "half")
    report(module, names, options, **terms)


def report(module, names, options, **terms) -> list[dict]:
    """Run, unless the file is to be read, say what came out, and return the rows."""
    if options.verdict:
        rows = results_file.read(options.output)[1]
    else:
        rows = module.run(options.output, options.command, names, **terms)
    print(*module.report(rows), sep="\n")
    return rows


def prior(module, names, options) -> None:
    if names == ["months"]:
        found = module.months(RESULTS / "prior_months.csv", options.command, options.runs)
        print(*found, sep="\n")
    else:
        report(module, names, options, **given(options, "epsilons", "runs"))


def reports(module, names, options) -> None:
    """Fail if a verdict is "wrong"."""
    if any(row["verdict"] == module.WRONG for row in report(module, names, options)):
        raise SystemExit(1)


def papers(module, names, options) -> None:
    """Run the experiments of the five papers, or judge and draw the last run anew."""
    if options.data is not None:
        registry.SHARED = options.data
    module.run(names, options.quick, options.verdict, options.output)


@dataclass(frozen=True)
class Command:
    """A benchmark by its name on the command line.

    Attributes
    ----------
    module : str
        In the package benchmarks; imported only if its command is run.
    run : callable (module, names, options)
    about : str
        What it does.
    output : str or None
        Its file in the folder of results; ``--output`` says otherwise.
    names : str
        What names that follow are names of; "" if it takes none.
    runs : int
        As ``--runs`` says otherwise.
    """

    module: str
    run: Callable[[ModuleType, list[str], argparse.Namespace], None]
    about: str
    output: str | None = None
    names: str = ""
    runs: int = 10


COMMANDS = {
    "utility": Command(
        "utility", accuracy, "accuracy at a given budget, merged into utility.csv", "utility.csv",
        "DATA SET",
    ),
    "speed": Command(
        "speed",
        lambda module, names, options: module.run(options.output, options.command, False, names),
        "ratios, measured in one run", "speed.csv", "PART",
    ),
    "held_out": Command(
        "held_out", accuracy,
        "accuracy on data sets from two packages, and its verdict", "held_out.csv", "DATA SET",
    ),
    "cases": Command(
        "cases.running", cases,
        "generated data with ugly columns: raw, and with free scaling", "cases.csv", "CASE",
    ),
    "expected": Command(
        "expected", lambda module, names, options: module.run(),
        "what plans say a budget is worth, fitted anew and written into the package",
    ),
    "inference": Command(
        "inference", inference,
        "coverage and width of intervals; parts: real, peers, links", None, "PART",
    ),
    "scores": Command(
        "score_coverage", scores, "coverage of private scores", "scores.csv", "METRIC"
    ),
    "fuzz": Command(
        "fuzz", lambda module, names, options: sys.exit(module.run(options.runs) > 0),
        "random estimators and hostile values, see fuzz.py", runs=1000,
    ),
    "audit": Command(
        "audit",
        lambda module, names, options: module.run(options.output, options.command, options.runs),
        "canaries against the claim, see audit.py", "audit.csv", runs=20,
    ),
    "bugs": Command(
        "bug_table", lambda module, names, options: module.run(options.output, names),
        "which check raises the alarm on which seeded bug", "bugs.csv", "BUG",
    ),
    "counts": Command(
        "counts", counts, "counts and costs of real tables, beside least squares", "counts.csv",
        "DATA SET", 5,
    ),
    "prior": Command(
        "prior", prior, "fits from a public model that matches, is shifted or wrong", "prior.csv",
        "DATA SET", 50,
    ),
    "reports": Command(
        "reports.running", reports,
        "inputs of public bug reports: the right value, the package's, the verdict", "reports.csv",
        "KIND or REPORT",
    ),
    "papers": Command(
        "papers.report", papers,
        "experiments of five papers: table, figure, verdict; --quick needs no download", None,
        "h22, w17, wu21, k22, v22, pure",
    ),
}  # fmt: skip


def listing() -> str:
    """All commands, with what they do."""
    calls = {
        name: f"{name} [{command.names} ...]" if command.names else name
        for name, command in COMMANDS.items()
    }
    width = max(map(len, calls.values()))
    return "\n".join(
        f"  python -m benchmarks {call:<{width}}  {COMMANDS[name].about}"
        for name, call in calls.items()
    )


def parse(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"{__doc__}\n\n{listing()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "what", nargs="*", help="a command, utility by default, and names where it takes some"
    )
    parser.add_argument(
        "--methods", nargs="+", default=[],
        help="names of methods, or kinds: reference, skdp, solver, rival, 'not private'",
    )  # fmt: skip
    parser.add_argument("--conditions", nargs="+", help="raw, standardised; both by default")
    parser.add_argument("--epsilon", dest="epsilons", type=float, nargs="+")
    parser.add_argument("--delta", type=float)
    parser.add_argument("--runs", type=int, help="10 by default, of counts 5")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument(
        "--half", choices=[*HALVES, "made up", "all"], default=HALVES[0], help="of held_out, counts"
    )
    parser.add_argument("--verdict", action="store_true", help="from the file of results")
    parser.add_argument("--before", type=Path, help="of cases: a file to compare with")
    parser.add_argument(
        "--output", type=Path, help="a file (of papers a folder) in place of results"
    )
    parser.add_argument(
        "--quick", action="store_true", help="of papers: small, without a download, kept apart"
    )
    parser.add_argument("--data", type=Path, help="of papers: the folder of mnist.npz, covertype")
    return parser, parser.parse_args(arguments)


def main() -> None:
    parser, options = parse()
    name, *names = options.what or ["utility"]
    if name not in COMMANDS:
        parser.error(f"unknown benchmark {name!r}; see python -m benchmarks --help")
    command = COMMANDS[name]
    options.command = "python -m benchmarks " + shlex.join(sys.argv[1:])
    options.runs = command.runs if options.runs is None else options.runs
    if options.output is None and command.output is not None:
        options.output = RESULTS / command.output
    command.run(importlib.import_module(f"benchmarks.{command.module}"), names, options)


if __name__ == "__main__":
    main()
