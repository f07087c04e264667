"""Make the environment of diffprivlib, find it, and run a worker in it.

    python -m benchmarks.environments.diffprivlib_env

makes ``build/diffprivlib`` with the newest scikit-learn on which diffprivlib works, and writes the
versions to ``benchmarks/results/diffprivlib.json``. With 1.8 its
LogisticRegression fails (it passes ``multi_class``, which is no more); with 1.9 it cannot even be
imported (``cannot import name 'DOUBLE' from 'sklearn.tree._tree'``).
"""

from __future__ import annotations

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


def run_there(*words: str) -> str:
    """Run the worker, and return what it printed; RuntimeError with its reason if it cannot."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
    command = [python(), WORKER, *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return done.stdout


def ask(**task) -> dict[str, np.ndarray]:
    """Fit in the other environment."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/{name}.npz" for name in ("task", "answer")]
        np.savez(paths[0], **task)
        run_there(*paths)
        with np.load(paths[1], allow_pickle=False) as answer:
            return dict(answer)


if __name__ == "__main__":
    make()
    text = json.dumps(json.loads(run_there("versions")), indent=2)
    (Path(__file__).parents[1] / "results" / "diffprivlib.json").write_text(text + "\n")
    print(text)
