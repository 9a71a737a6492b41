"""What statsmodels, scikit-learn and shap say of models: standard errors, permutation importance, contributions.

Writes explain.json beside itself, with the rows: pip install statsmodels scikit-learn shap, then
python tests/golden/explain.py
"""

import json
import pathlib
import warnings

import numpy as np
import shap
import statsmodels.api as sm
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression

warnings.simplefilter("ignore")


def inference(data, label, numbers, category=None, weight=None, model="linear"):
    """Coefficients of a data set of statsmodels. Numbers are those that type real can hold, as tuples do."""
    rows = data[[label, *numbers, *([category] if category else []), *([weight] if weight else [])]].dropna()
    for name in {label, *numbers, *([weight] if weight else [])}:
        rows[name] = rows[name].astype(np.float32).astype(np.float64)
    design = {"(intercept)": np.ones(len(rows))} | {name: rows[name].to_numpy() for name in numbers}
    if category:
        rows[category] = rows[category].astype(int).map(lambda value: f"c{value}")
        # the first category is what the others are compared with
        design |= {f"{category}={v}": (rows[category] == v).to_numpy(float) for v in sorted(set(rows[category]))[1:]}
    x, y = np.column_stack(list(design.values())), rows[label].to_numpy()
    weights = rows[weight].to_numpy() if weight else np.ones(len(rows))
    families = {"logistic": sm.families.Binomial, "poisson": sm.families.Poisson}
    if model in families:
        fit = sm.GLM(y, x, family=families[model](), freq_weights=weights).fit(tol=1e-14, maxiter=100)
    else:
        fit = sm.WLS(y, x, weights=weights).fit()
    intervals = fit.conf_int(0.1)
    estimates = {
        name: [fit.params[i], fit.bse[i], fit.tvalues[i], fit.pvalues[i], *intervals[i]]
        for i, name in enumerate(design)
    }
    rows = rows.rename(columns={label: "label"})
    return {
        "model": model,
        "weight": weight,
        "category": category,
        "rows": rows.to_dict("records"),
        "estimates": estimates,
    }


load = sm.datasets
longley = load.longley.load_pandas().data
card = load.ccard.load_pandas().data
spector = load.spector.load_pandas().data
crime = load.statecrime.load_pandas().data
crime["region"] = np.arange(len(crime)) % 4
votes = load.anes96.load_pandas().data.iloc[:300].copy()
votes["party"] = votes["PID"] // 2
affairs = load.fair.load_pandas().data.iloc[::20].copy()
affairs["had"] = (affairs["affairs"] > 0).astype(float)
affairs["times"] = 1.0 + np.arange(len(affairs)) % 3
health = load.randhie.load_pandas().data.iloc[::40].copy()
health["times"] = 1.0 + np.arange(len(health)) % 4
months = load.sunspots.load_pandas().data
months["century"] = months["YEAR"] // 100
months["phase"] = np.sin(2 * np.pi * months["YEAR"] / 11)
sets = {
    "longley": inference(longley, "TOTEMP", ["GNPDEFL", "GNP", "UNEMP", "ARMED", "POP", "YEAR"]),
    "ccard": inference(card, "AVGEXP", ["AGE", "INCOME"], category="OWNRENT", weight="INCOMESQ"),
    "statecrime": inference(crime, "murder", ["hs_grad", "poverty", "single", "white"], category="region"),
    "spector": inference(spector, "GRADE", ["GPA", "TUCE", "PSI"], model="logistic"),
    "anes96": inference(votes, "vote", ["logpopul", "selfLR", "age", "income"], category="party", model="logistic"),
    "fair": inference(
        affairs, "had", ["age", "yrs_married", "children"], category="rate_marriage", weight="times", model="logistic"
    ),
    "randhie": inference(
        health, "mdvis", ["lncoins", "lpi", "fmde", "physlm"], category="idp", weight="times", model="poisson"
    ),
    "sunspots": inference(months, "SUNACTIVITY", ["YEAR", "phase"], category="century", model="poisson"),
    "affairs": inference(affairs, "affairs", ["age", "yrs_married", "religious", "educ"], model="poisson"),
}

# the rows of evaluate.py, and the model that tests/src/stored.rs stores
i = np.arange(1, 401)
x = np.stack([(i * 37 % 101) / 16 - 3 + 1 / 64, (i * 53 % 97) / 8 - 6, (i * 11 % 13) / 4 - 1.5], axis=1)
weights, intercept = np.array([0.5, -1.25, 2]), 0.125
positive = (i * 29 % 7 + 3 * (x @ weights + intercept > 0)) > 4
stored = LogisticRegression().fit(x, positive)
stored.coef_, stored.intercept_ = weights.reshape(1, -1), np.array([intercept])
repeats = 200
permuted = permutation_importance(stored, x, positive, n_repeats=repeats, random_state=0)
explainer = shap.LinearExplainer((weights, intercept), shap.maskers.Independent(x, max_samples=len(x)))

golden = {
    "inference": sets,
    "importance": {
        "repeats": repeats,
        "mean": permuted.importances_mean.tolist(),
        "deviation": permuted.importances_std.tolist(),
        "effect": (np.abs(weights) * x.std(axis=0)).tolist(),
    },
    "contributions": {"base": float(explainer.expected_value), "rows": explainer.shap_values(x[:5]).tolist()},
}
pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(golden) + "\n")
