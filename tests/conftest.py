"""One thread of linear algebra in each process that runs tests: more would wait in turns."""

import os

for _name in ("OPENBLAS", "OMP", "MKL", "BLIS"):
    os.environ.setdefault(f"{_name}_NUM_THREADS", "1")  # before numpy is imported
