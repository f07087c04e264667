"""Write the example of the page on dossiers: python docs/dossier_example.py."""

import tempfile
import warnings
from pathlib import Path

from sklearn.datasets import load_breast_cancer

import skdp
from skdp.accounting import Laplace
from skdp.audit import dossier

FOLDER = Path(__file__).parent / "_static" / "dossier"


def main(folder=FOLDER, n_fits=1000):
    X, y = load_breast_cancer(return_X_y=True)
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore", skdp.NoiseWarning)
        ledger = Path(place) / "tumours.db"
        with skdp.PrivacyBudget(2.0, 1e-5, ledger=ledger, data="breast cancer") as budget:
            budget.charge_external(Laplace(10.0, spread=1), "number of malignant tumours")
            model = skdp.DPLogisticRegression(epsilon=1.0, classes=[0, 1]).fit(X, y)
        answers = {
            "name": "Example: malignant or benign",
            "data_source": "Breast cancer Wisconsin (diagnostic), UCI; public",
            "intended_use": "Documentation of skdp",
            "other_uses": "All are in the ledger.",
            "tuning": "None was tuned.",
            "preparation": "Nothing.",
        }
        return dossier(model, folder, ledger=ledger, answers=answers, n_fits=n_fits, random_state=0)


if __name__ == "__main__":
    main()
