"""Plot utility bounds against the number of steps."""

from typing import Any

import numpy as np

from skdp.planning.bounds import largest_momentum_step, number_of_steps, utility_bound


def plot_utility_bounds(
    alpha: float,
    kappa: float,
    *,
    momentum: float = 0.5,
    most_steps: int | None = None,
    batch_noise: float = 0.0,
    ax: Any = None,
) -> Any:
    """Plot the four bounds of Hong, Wang, Zhou (2022) against the number of steps.

    They are those of uniform and dynamic noise, without and with momentum; a dot marks the minimum
    of each. With ``batch_noise`` they are those of private stochastic gradient descent. All
    arguments are public. Needs matplotlib (``pip install skdp[demo]``).

    Parameters
    ----------
    alpha, kappa : float
        As in `utility_bound`.
    momentum : float, default=0.5
        beta of the bounds with momentum; their step size is the largest for which they hold.
    most_steps : int or None, default=None
        Right end of the axis.
    batch_noise : float, default=0.0
        As in `utility_bound`: the noise of batches; 0 if every step takes all rows.
    ax : matplotlib Axes or None, default=None
        Axes to plot on; None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    if ax is None:
        from matplotlib import pyplot as plt

        _, ax = plt.subplots()
    eta0 = largest_momentum_step(momentum, kappa)
    kinds: dict[str, dict[str, Any]] = {
        "gradient descent": {"batch_noise": batch_noise},
        f"momentum {momentum:g}": {"momentum": momentum, "eta0": eta0, "batch_noise": batch_noise},
    }
    best = {
        (kind, noise): number_of_steps(alpha, kappa, noise, **options)
        for kind, options in kinds.items()
        for noise in ("uniform", "dynamic")
    }
    right = 3 * max(best.values()) if most_steps is None else most_steps
    grid = sorted({round(n) for n in np.geomspace(1, right, 80)})
    for (kind, noise), least in best.items():
        options = kinds[kind]
        values = [utility_bound(n, alpha, kappa, noise, **options) for n in grid]
        (line,) = ax.loglog(
            grid, values, label=f"{kind}, {noise}", ls="--" if noise == "uniform" else "-"
        )
        at_best = utility_bound(least, alpha, kappa, noise, **options)
        ax.plot(least, at_best, "o", color=line.get_color())
    ax.set(
        xlabel="steps",
        ylabel="bound on the excess, relative to the start",
        title=f"alpha = {alpha:.3g}, kappa = {kappa:g}"
        + (f", batches {batch_noise:.3g}" if batch_noise else ""),
    )
    ax.legend()
    return ax
