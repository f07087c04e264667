"""UCI Adult, income above 50K: 32561 rows to train and 16281 to test, one-hot, no fnlwgt.

The split is the official one; a seed varies the noise alone.
"""

from functools import cache

import pandas as pd

from benchmarks.columns import one_hot
from benchmarks.registry import Split, shared_file

CATEGORIES = {
    "workclass": "?,Federal-gov,Local-gov,Never-worked,Private,Self-emp-inc,Self-emp-not-inc,"
    "State-gov,Without-pay",
    "education": "10th,11th,12th,1st-4th,5th-6th,7th-8th,9th,Assoc-acdm,Assoc-voc,Bachelors,"
    "Doctorate,HS-grad,Masters,Preschool,Prof-school,Some-college",
    "marital-status": "Divorced,Married-AF-spouse,Married-civ-spouse,Married-spouse-absent,"
    "Never-married,Separated,Widowed",
    "occupation": "?,Adm-clerical,Armed-Forces,Craft-repair,Exec-managerial,Farming-fishing,"
    "Handlers-cleaners,Machine-op-inspct,Other-service,Priv-house-serv,Prof-specialty,"
    "Protective-serv,Sales,Tech-support,Transport-moving",
    "relationship": "Husband,Not-in-family,Other-relative,Own-child,Unmarried,Wife",
    "race": "Amer-Indian-Eskimo,Asian-Pac-Islander,Black,Other,White",
    "sex": "Female,Male",
    "native-country": "?,Cambodia,Canada,China,Columbia,Cuba,Dominican-Republic,Ecuador,"
    "El-Salvador,England,France,Germany,Greece,Guatemala,Haiti,Holand-Netherlands,Honduras,Hong,"
    "Hungary,India,Iran,Ireland,Italy,Jamaica,Japan,Laos,Mexico,Nicaragua,"
    "Outlying-US(Guam-USVI-etc),Peru,Philippines,Poland,Portugal,Puerto-Rico,Scotland,South,"
    "Taiwan,Thailand,Trinadad&Tobago,United-States,Vietnam,Yugoslavia",
}


@cache
def table():
    frame = pd.read_csv(shared_file("adult.csv.gz"), keep_default_na=False)
    is_train = (frame.pop("split") == "train").to_numpy()
    y = (frame.pop("income") == ">50K").to_numpy().astype(int)
    return one_hot(frame.drop(columns="fnlwgt"), CATEGORIES), y, is_train


def load(seed):
    X, y, is_train = table()
    return Split(X[is_train], X[~is_train], y[is_train], y[~is_train], is_classification=True)
