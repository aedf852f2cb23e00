"""The comparison of two runs of ``tests/benchmarks/quality``, on handmade results."""

import csv
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).parent / "benchmarks" / "quality"


def results(path, scores):
    """File of scores: two splits that differ by 1, and two seeds that differ by a spread."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["set", "split", "seed", "score", "error", "seconds"])
        for name, (score, spread) in scores.items():
            for split in (0, 1):
                for seed in (0, 1):
                    writer.writerow([name, split, seed, score + split + spread * seed, 1.0, 1.0])
    return str(path)


@pytest.mark.parametrize(
    ("gains", "spread", "reasons"),
    [
        ([-0.015, -0.015], 0.01, []),  # little
        ([0.15, -0.15], 0.5, []),  # no more than seeds differ
        ([-0.05, -0.15, None], 0.01, ["set 1", "set 2", "mean"]),
    ],
)
def test_runs_that_are_worse_are_found(tmp_path, gains, spread, reasons):
    stored = {f"set {i}": (float(i), spread) for i in range(len(gains))}
    new = {f"set {i}": (i + gain, spread) for i, gain in enumerate(gains) if gain is not None}
    files = results(tmp_path / "stored.csv", stored), results(tmp_path / "new.csv", new)
    command = [sys.executable, str(SUITE), "compare", *files]
    ran = subprocess.run(command, capture_output=True, text=True)
    found = [line.partition(":")[0] for line in ran.stderr.splitlines()]
    assert (ran.returncode, found) == (int(reasons != []), reasons)
