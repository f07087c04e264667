"""A fit on a data frame of Spark, in local mode, by the class of the example."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

import skdp
from replays import seeded

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "spark.py"


def example():
    spec = importlib.util.spec_from_file_location("spark_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_without_spark_the_example_says_so(monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    example().main()
    assert "left out: " in capsys.readouterr().out


def test_a_data_frame_gives_what_arrays_give():
    sql = pytest.importorskip("pyspark.sql", reason="Spark needs pip install 'skdp[spark]'")
    if shutil.which("java") is None:
        pytest.skip("Spark needs a Java runtime, such as Debian's default-jre-headless")
    builder = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    try:
        module = example()
        frame = module.made_up(spark, 3000, 2)
        rows = module.SparkRows(frame, ["a", "b"], "y")
        model = skdp.DPRidge(privacy=seeded(), solver="boosted_ssp").fit(rows)
        X, y = (np.concatenate(parts) for parts in zip(*rows._arrays.collect(), strict=True))
        here = skdp.DPRidge(privacy=seeded(), solver="boosted_ssp").fit(X, y)
        np.testing.assert_allclose(model.coef_, here.coef_, rtol=1e-9)
        assert model.privacy_.n_rows == 3000
    finally:
        spark.stop()
