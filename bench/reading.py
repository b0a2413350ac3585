"""Time and memory of reading a table: ours beside pandas and pyarrow, each in a process of its own.

Usage: python bench/reading.py [ROWS COLUMNS]        (default: 20000 rows, 100 columns of numbers and one of words)

Each process imports what it needs, reads the file, and makes one matrix of the columns of numbers. The figures are medians of
five rounds, in which the readers take turns: processor time after the imports, and the largest memory of the whole process.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

READERS = {  # imports, and how a table is read
    "pandas": (
        "import pandas",
        "t = pandas.read_csv(path); X = t[[n for n in t if n != 'word']].to_numpy()",
    ),
    "pyarrow": (
        "import numpy; from pyarrow import csv",
        "t = csv.read_csv(path);"
        "X = numpy.column_stack([t[n].to_numpy() for n in t.column_names if n != 'word'])",
    ),
    "idm_nb": (
        "from idm_nb.tables.reading import read_table",
        "t = read_table(path); X = t.numbers([n for n in t.names if n != 'word'])",
    ),
    "idm_nb, in pieces": (
        "from idm_nb.tables.reading import tables_of",
        "tables = tables_of(path, rows=2000);"
        "X = max((t.numbers([n for n in t.names if n != 'word']) for t in tables), key=len)",
    ),
}
MEASURE = """
import resource, sys, time
{}
path, start = sys.argv[1], time.process_time()
{}
seconds = time.process_time() - start
print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, *X.shape)
"""


def write(path, rows, columns):
    "A CSV file of numbers in full precision and a column of words."
    import numpy as np

    values = np.random.default_rng(0).normal(size=(rows, columns))
    with open(path, "w") as file:
        file.write(",".join(f"x{k}" for k in range(columns)) + ",word\n")
        for k, row in enumerate(values.tolist()):
            file.write(",".join(map(repr, row)) + f",name {k % 300}\n")


def main(rows=20_000, columns=100, rounds=5):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        write(path, rows, columns)
        print(
            f"{rows} x {columns} numbers and a column of words, {path.stat().st_size / 2**20:.0f} MiB"
        )
        found = {name: [] for name in READERS}
        for _ in range(rounds):
            for name, code in READERS.items():
                run = [sys.executable, "-c", MEASURE.format(*code), str(path)]
                told = subprocess.run(run, capture_output=True, text=True, check=True).stdout
                found[name].append([float(word) for word in told.split()[:2]])
    for name, runs in found.items():
        seconds, megabytes = (median(column) for column in zip(*runs))
        print(f"{name:19}{seconds:6.2f} s {megabytes:6.0f} MiB")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(*map(int, sys.argv[1:]))
