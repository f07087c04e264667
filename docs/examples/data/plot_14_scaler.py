"""
Private scaling for other models
================================

The linear models of skdp scale columns as part of the fit. `skdp.DPStandardScaler` is for other
models, or to look at ranges and standard deviations.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import skdp

frame, _ = load_wine(return_X_y=True, as_frame=True)
rows = frame.sample(20_000, replace=True, random_state=0)  # the size of a registry
scaler = skdp.DPStandardScaler(epsilon=0.5).fit(rows)

figure, axes = plt.subplots(figsize=(4.8, 3.5))
places = np.arange(frame.shape[1])
axes.scatter(places, scaler.mean_ / rows.mean(), label="centre / mean")
axes.scatter(places, scaler.scale_ / rows.std(), marker="s", label="scale / standard deviation")
axes.axhline(1.0, color="grey")
axes.set_xticks(places, frame.columns, rotation=60, ha="right")
axes.set(ylim=(0, 2))
axes.legend()
figure.tight_layout()
