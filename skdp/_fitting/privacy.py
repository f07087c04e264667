"""The terms of privacy of a fit: neighbouring relation, shared budget and noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from sklearn.base import BaseEstimator

from skdp._fitting.budget import PrivacyBudget
from skdp._numbers import is_integer, require, require_bound, shown
from skdp._oracle import NoiseSource, noise_source
from skdp.accounting import Adjacency


class SeededNoise(BaseEstimator):
    """Noise that follows from a seed, for tests and for research on public data.

    It is reproducible, so that whoever knows the seed can subtract it: such a fit is **not
    private**. A `SeededNoiseWarning` and the privacy statement say so. Two fits with the same seed
    draw the same noise.

    Parameters
    ----------
    seed : int
        At least 0.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skdp import DPRidge, Privacy, SeededNoise
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DPRidge(privacy=Privacy(noise=SeededNoise(0))).fit(X, y)
    >>> model.privacy_.noise_source
    'seeded'
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed


class Privacy(BaseEstimator):
    """Terms under which fits are private, beside epsilon and delta.

    Parameters
    ----------
    adjacency : {"zero_out", "replace_one", "label"}, default="zero_out"
        Neighbouring data sets differ in one record, which is replaced by a null record or by any
        other. The number of records, of rows or of groups, is public in both. "replace_one" needs
        twice the noise. "label" replaces the target of one record and treats all of X as public, as
        in a survey of a known register: columns and their second moments are read without noise. No
        column may follow from the targets of these rows, as in `sklearn.multioutput.RegressorChain`
        or after a target encoder: a ``budget`` refuses a fit in which a column equals an earlier
        fit's target.
    budget : PrivacyBudget or None, default=None
        Budget that fits share: each is charged before its rows are used, and a fit that would
        overspend is refused. Clones also share it.
    noise : "system" or SeededNoise, default="system"
        "system" draws noise from the operating system's secure source.
    rows_per_group : float or None, default=None
        For fits with ``groups``: a public guess of the number of rows of a group, not computed from
        the data. With a guess above 1, solvers "gd", "adp_sgd" and the accelerated ones clip the
        mean gradient of a group. Its norm is smaller than the norms of the rows' gradients, so the
        default clipping norm and the noise are smaller. None clips the gradient of each row. The
        guarantee is the same, whatever the guess.
    max_weight : float or None, default=None
        For fits with ``sample_weight``: a public bound on weights, not computed from the data.
        Larger weights count as this one. None estimates a scale of the weights privately, as a part
        of the fit.

    Examples
    --------
    >>> from skdp import DPRidge, Privacy, PrivacyBudget
    >>> budget = PrivacyBudget(3.0, 1e-6, adjacency="replace_one")
    >>> model = DPRidge(privacy=Privacy(adjacency="replace_one", budget=budget))
    >>> model.set_params(privacy__adjacency="zero_out").privacy.adjacency
    'zero_out'
    """

    def __init__(
        self,
        *,
        adjacency: str = "zero_out",
        budget: PrivacyBudget | None = None,
        noise: Literal["system"] | SeededNoise = "system",
        rows_per_group: float | None = None,
        max_weight: float | None = None,
    ) -> None:
        self.adjacency = adjacency
        self.budget = budget
        self.noise = noise
        self.rows_per_group = rows_per_group
        self.max_weight = max_weight

    def set_params(self, **params: Any) -> Self:
        """Set parameters, and the seed of the noise as ``noise__seed``.

        Parameters
        ----------
        **params : dict

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is unknown, or ``noise__seed`` is set where no `SeededNoise` is.
        """
        refuse_nested_names("Privacy", params, self.get_params(deep=False))
        super().set_params(**params)
        return self

    def check(self, labels: bool = True) -> None:
        """Raise ValueError if a parameter is out of its range.

        Parameters
        ----------
        labels : bool, default=True
            Whether there are targets, so that adjacency="label" means something.
        """
        Adjacency.parse(self.adjacency, labels=labels)
        budget, noise = self.budget, self.noise
        allowed = "be None or a PrivacyBudget"
        require("budget", budget, allowed, budget is None or isinstance(budget, PrivacyBudget))
        if isinstance(noise, SeededNoise):
            seed = noise.seed
            require("seed", seed, "be an integer, at least 0", is_integer(seed) and seed >= 0)
        else:
            is_system = isinstance(noise, str) and noise == "system"
            require("noise", noise, "be 'system' or SeededNoise(seed)", is_system)
        require_bound("rows_per_group", self.rows_per_group, is_optional=True)
        require_bound("max_weight", self.max_weight, is_optional=True)

    @property
    def noise_source(self) -> Literal["system", "seeded"]:
        """The source of noise, as statements name it."""
        return "seeded" if isinstance(self.noise, SeededNoise) else "system"

    def draws(self) -> tuple[NoiseSource, str | None]:
        """Return the source of a fit's noise, and a fingerprint of its seed if it has one."""
        if isinstance(self.noise, SeededNoise):
            return noise_source(self.noise.seed), f"integer {int(self.noise.seed)}"
        return noise_source(None), None

    def for_plans(self) -> Privacy:
        """Return the terms that plans and checks of rows depend on: no budget, and no noise."""
        return Privacy(
            adjacency=self.adjacency,
            rows_per_group=self.rows_per_group,
            max_weight=self.max_weight,
        )


def refuse_nested_names(
    who: str, given: Mapping[str, object], current: Mapping[str, object]
) -> None:
    """Raise ValueError for a nested name, such as ``privacy__budget``, of a plain value.

    Parameters
    ----------
    who : str
    given : mapping
        New values, by name.
    current : mapping
        The present values of all parameters.
    """
    for name in given:
        outer, _, inner = name.partition("__")
        value = given.get(outer, current.get(outer))
        if inner and outer in current and not hasattr(value, "set_params"):
            raise ValueError(
                f"{who}: {name} is a parameter of an object, and {outer} is {shown(value)}. Set "
                f"{outer} to an object first."
            )


def check_privacy(privacy: object) -> None:
    """Raise ValueError unless ``privacy`` is None or a Privacy object."""
    allowed = "be None or a Privacy object, such as Privacy(adjacency='replace_one')"
    require("privacy", privacy, allowed, privacy is None or isinstance(privacy, Privacy))


def terms_among(parameters: Mapping[str, object]) -> dict[str, Privacy]:
    """Return the terms of privacy among an estimator's parameters, with defaults for None."""
    return {
        name: value if isinstance(value, Privacy) else Privacy()
        for name, value in parameters.items()
        if name.rpartition("__")[2] == "privacy"
    }
