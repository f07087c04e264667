"""Make the environment of diffprivlib, find it, and talk to a worker in it.

    python -m benchmarks.environments.diffprivlib_env

makes ``build/diffprivlib`` with the newest scikit-learn on which diffprivlib works. With 1.8 its
LogisticRegression fails (it passes ``multi_class``, which is no more); with 1.9 it cannot even be
imported (``cannot import name 'DOUBLE' from 'sklearn.tree._tree'``).
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import tempfile
import venv
from pathlib import Path

import numpy as np

from benchmarks.registry import Unavailable

HOME = Path(__file__).resolve().parents[2] / "build" / "diffprivlib"
PACKAGES = ["diffprivlib==0.6.6", "scikit-learn==1.7.2"]
WORKER = Path(__file__).with_name("diffprivlib_worker.py")


def python() -> Path:
    """Its interpreter, or the reason why there is none."""
    path = HOME / "bin" / "python"
    if not path.exists():
        raise Unavailable("diffprivlib: python -m benchmarks.environments.diffprivlib_env makes it")
    return path


def make() -> None:
    """Make the environment."""
    venv.create(HOME, with_pip=True, clear=True)
    subprocess.run([python(), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)


@functools.cache
def worker(process_id: int) -> subprocess.Popen[str]:
    """One worker for each process of the benchmark."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.Popen(
        [python(), str(WORKER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )


def say(line: str) -> str:
    """Send a line to the worker and return its answer."""
    process = worker(os.getpid())
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def versions() -> dict[str, str]:
    """Versions in that environment."""
    return json.loads(say("versions"))


def ask(**task) -> dict[str, np.ndarray]:
    """Fit in the worker; raises RuntimeError with its reason if it cannot."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "task.npz")
        np.savez(path, **task)
        told = say(path)
        if not told.endswith(".answer.npz"):
            raise RuntimeError(told or "the worker ended")
        with np.load(told, allow_pickle=False) as answer:
            return dict(answer)


if __name__ == "__main__":
    make()
    print(versions())
