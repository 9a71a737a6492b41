"""Measures what benches/ways/run describes, and prints the quotient of auto and the best way of each case."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
ROWS = int(os.environ.get("ROWS", "200000"))
WIDE = ROWS // 100
TRIPS = [float(trip) for trip in os.environ.get("TRIPS", "0.1 5").split()]
COUNTS = [int(count) for count in os.environ.get("COUNTS", "2 8").split()]
ROUNDS = int(os.environ.get("ROUNDS", "3"))
# seconds after which a way counts as too slow
LIMIT = int(os.environ.get("LIMIT", "60"))
BOUND = 1.2
SCORE = 0.002

# case: expression of the server of row i on n servers, more arguments
CASES = {
    "similar label mix": ("i % n", ""),
    "label per server": ("(label * n + i % n) / 2 % n", ""),
    "group per server": ("i % n", ", group_by => 'far'"),
    "groups on all servers": ("i % n", ", group_by => 'site'"),
    "wide rows": ("i % n", ""),
}
AUTO = ", servers => 'auto'"
WAYS = {
    "newton": ", servers => '{names}', solver => 'newton'",
    "averaging": ", servers => '{names}', batch_size => 1",
    "mini-batches": ", servers => '{names}', batch_size => 4096",
    "spool": "",
}


def psql(sql, limit=0):
    settings = f"SET client_min_messages = warning; SET statement_timeout = '{limit}s'"
    done = subprocess.run(
        ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", settings, "-c", sql], capture_output=True, text=True
    )
    if done.returncode == 0:
        return done.stdout.strip()
    if "statement timeout" in done.stderr:
        return None
    raise RuntimeError(done.stderr)


def notices(sql):
    done = subprocess.run(["psql", "-XqAt", "-c", sql], check=True, capture_output=True, text=True)
    return next((line for line in done.stderr.splitlines() if "ways to train" in line), "no notice")


def make_tables():
    psql("CREATE EXTENSION corgipile; CREATE EXTENSION postgres_fdw; CREATE EXTENSION dblink")
    for table, rows, width in (("narrow", ROWS, 12), ("wide", WIDE, 1000)):
        shift = 0.3 if width == 12 else 0.04
        psql(
            f"SELECT setseed(0.5); CREATE TABLE {table} AS SELECT i, i / 7 % 2 AS label, i % 100 AS site, "
            f"ARRAY(SELECT (random() - 0.5 + {shift} * (i / 7 % 2))::real FROM generate_series(1, {width})) AS v "
            f"FROM generate_series(1, {rows}) i"
        )


def spread(case, count, directory):
    """A view `far_rows` of foreign tables on as many servers, which have the rows of the case; its servers' names."""
    table, names = "wide" if case == "wide rows" else "narrow", [f"s{k}" for k in range(count)]
    where = CASES[case][0].replace("n", str(count))
    database, port = psql("SELECT current_database()"), psql("SELECT current_setting('port')")
    sql = ["DROP SCHEMA IF EXISTS parts CASCADE; CREATE SCHEMA parts"]
    for k, name in enumerate(names):
        options = f"host '{directory}', port '{port}', dbname '{database}', fetch_size '10000'"
        sql.append(f"DROP SERVER IF EXISTS {name} CASCADE")
        sql.append(f"CREATE SERVER {name} FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({options})")
        sql.append(f"CREATE USER MAPPING FOR CURRENT_USER SERVER {name}")
        sql.append(f"CREATE TABLE parts.p{k} AS SELECT *, {k} AS far FROM {table} WHERE {where} = {k}")
        sql.append(f"CREATE FOREIGN TABLE parts.f{k} (i int, label int, site int, v real[], far int) SERVER {name} "
                   f"OPTIONS (schema_name 'parts', table_name 'p{k}')")  # fmt: skip
    union = " UNION ALL ".join(f"TABLE parts.f{k}" for k in range(count))
    sql.append(f"CREATE OR REPLACE VIEW parts.far_rows AS {union}")
    psql("; ".join(sql))
    psql("VACUUM ANALYZE")
    return ",".join(names)


def name_of(case):
    """A name means one model, or the models of groups."""
    return "groups" if CASES[case][1] else "m"


def call(more, case, names):
    more = more.format(names=names) + CASES[case][1]
    return (
        f"corgipile_train('parts.far_rows', 'logistic', 'label', '{{v}}', name => '{name_of(case)}', seed => 1{more})"
    )


def score(case):
    """The accuracy of what was trained last, on all rows."""
    rows = "'SELECT i, label, site, v, far FROM parts.far_rows'"
    return float(psql(f"SELECT value FROM corgipile_evaluate('{name_of(case)}', {rows}) WHERE metric = 'accuracy'"))


def timed(more, case, names):
    """Seconds of a training and the model's score; None if it takes too long."""
    start = time.perf_counter()
    if psql(f"SELECT count(*) FROM {call(more, case, names)}", LIMIT) is None:
        return None
    return time.perf_counter() - start, score(case)


def measure(case, names):
    found = {}
    ways = {**WAYS, "auto": AUTO}
    for _ in range(ROUNDS):
        for way, more in ways.items():
            if way in found and found[way] is None:
                continue
            if case == "wide rows" and way == "newton":
                continue  # it fits no more than 256 features by itself
            result = timed(more, case, names)
            found[way] = min(filter(None, (found.get(way, result), result)), default=None)
    return found


def show(trip, count, case, names):
    """Measures a case and prints it. Returns whether the bound is missed."""
    found = measure(case, names)
    # what is not as good as one server is not a way to get its model
    good = found["spool"][1] - SCORE
    best = min(found[way][0] for way in WAYS if found.get(way) and found[way][1] >= good)
    seconds, reached = found["auto"] or (float("inf"), 0.0)
    is_missed = seconds > BOUND * best or reached < good
    cells = [f"{found[way][0]:.2f} ({found[way][1]:.3f})" if found.get(way) else "-" for way in (*WAYS, "auto")]
    line = f"{trip:>5} {count:>2} {case:<22} " + " ".join(f"{cell:>15}" for cell in cells)
    print(f"{line} {seconds / best:>9.2f}{' missed' if is_missed else ''}")
    print(f"         {notices('SELECT count(*) FROM ' + call(AUTO, case, names))}", flush=True)
    return is_missed


def main():
    make_tables()
    target = f"{psql('SHOW unix_socket_directories')}/.s.PGSQL.{psql('SHOW port')}"
    print(f"{ROWS:,} rows x 12, wide {WIDE:,} x 1,000: seconds (accuracy)")
    columns = " ".join(f"{way:>15}" for way in (*WAYS, "auto"))
    print(f"{'trip':>5} {'n':>2} {'case':<22} {columns} {'quotient':>9}")
    missed = 0
    for trip in TRIPS:
        with tempfile.TemporaryDirectory() as directory:
            # the server may be another user's
            Path(directory).chmod(0o755)
            source = f"{directory}/{Path(target).name}"
            proxy = subprocess.Popen([sys.executable, HERE / "proxy.py", source, target, str(trip)])
            try:
                while not Path(source).exists():
                    time.sleep(0.05)
                for count in COUNTS:
                    for case in CASES:
                        missed += show(trip, count, case, spread(case, count, directory))
            finally:
                proxy.terminate()
                proxy.wait()
    print(f"FIGURE cases in which auto takes over {BOUND} times the best way, or has a worse model | {missed} | 0")


if __name__ == "__main__":
    main()
