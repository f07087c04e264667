"""
Fit on a data frame of Spark
============================

A source of partitions in a few lines, here for Spark in local mode.

Each partition of the data frame becomes arrays once, which Spark's workers keep. In every pass, a
task runs there and returns a sum. It needs ``pip install "skdp[spark]"``, a Java runtime, and skdp
on the workers.
"""

import importlib.util
import shutil

import numpy as np

import skdp


class SparkRows(skdp.data.Partitions):
    """Rows of a data frame of Spark, whose partitions must not depend on private values."""

    def __init__(self, frame, columns, target):
        def arrays(index, rows):
            table = np.array([(*(row[name] for name in columns), row[target]) for row in rows])
            table = table.reshape(-1, len(columns) + 1)
            yield {"X": table[:, :-1], "y": table[:, -1], "index": index}

        rdd = frame.select(*columns, target).rdd
        self._arrays = rdd.mapPartitionsWithIndex(arrays).cache()

    def run(self, task, spread=map):
        """Run the task on each partition, in the partitions' order."""
        return self._arrays.map(lambda part: task(**part)).collect()

    def close(self):
        """Let go of the arrays on the workers."""
        self._arrays.unpersist()


def made_up(spark, n_rows, n_partitions):
    """Return a data frame of public, made-up rows with columns a, b and y."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 2))
    y = X @ [1.0, -0.5] + 0.3 * rng.standard_normal(n_rows)
    rows = np.column_stack([X, y]).tolist()
    return spark.createDataFrame(rows, ["a", "b", "y"]).repartition(n_partitions).cache()


def main():
    """Fit a ridge regression on three partitions and print its coefficients and its cost."""
    missing = "pyspark" if importlib.util.find_spec("pyspark") is None else None
    missing = missing or (None if shutil.which("java") else "a Java runtime")
    if missing:
        print(f"left out: {missing} is not installed")
        return
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    )
    rows = SparkRows(made_up(spark, 30_000, 3), ["a", "b"], "y")
    # Every pass is a job of Spark, so the solver makes few passes.
    model = skdp.DPRidge(epsilon=1.0, solver="boosted_ssp").fit(rows)
    rows.close()
    print(model.coef_.round(2))
    print(f"epsilon {model.privacy_.epsilon:.3f}, {model.privacy_.n_rows} rows")
    spark.stop()


if __name__ == "__main__":
    main()
