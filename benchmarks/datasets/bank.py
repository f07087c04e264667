"""UCI Bank Marketing: does a client subscribe; 41188 rows, one-hot, without the call's duration."""

import pandas as pd

from benchmarks.columns import one_hot, random_splits
from benchmarks.registry import shared_file

CATEGORIES = {
    "job": "admin.,blue-collar,entrepreneur,housemaid,management,retired,self-employed,services,"
    "student,technician,unemployed,unknown",
    "marital": "divorced,married,single,unknown",
    "education": "basic.4y,basic.6y,basic.9y,high.school,illiterate,professional.course,"
    "university.degree,unknown",
    "default": "no,unknown,yes",
    "housing": "no,unknown,yes",
    "loan": "no,unknown,yes",
    "contact": "cellular,telephone",
    "month": "jan,feb,mar,apr,may,jun,jul,aug,sep,oct,nov,dec",
    "day_of_week": "mon,tue,wed,thu,fri",
    "poutcome": "failure,nonexistent,success",
}


def table():
    frame = pd.read_csv(shared_file("bank_additional_full.csv.gz"), keep_default_na=False)
    y = (frame.pop("y") == "yes").to_numpy().astype(int)
    return one_hot(frame.drop(columns="duration"), CATEGORIES), y


load = random_splits(table, is_classification=True)
