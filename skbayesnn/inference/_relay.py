"""Numbers from other processes of this machine, while the one that started them waits."""

import os
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from threading import Event, Thread

import numpy as np

POLLED = 0.2  # seconds between looks at what other processes have done


class Relay:
    """Passes numbers from other processes on, through a file that they append to.

    Parameters
    ----------
    path : str
        Where there is no such file, on another machine, nothing is passed on.
    """

    def __init__(self, path):
        self.path = path

    def __call__(self, *numbers):
        """Pass on numbers."""
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))
        except OSError:
            return
        try:
            os.write(file, np.array(numbers, dtype=float).tobytes())
        finally:
            os.close(file)


@contextmanager
def relayed(tell, n_numbers):
    """A `Relay` that works in other processes; ``tell`` is called here with what it gets.

    Parameters
    ----------
    tell : callable
    n_numbers : int
        Of each call.
    """
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path, over, size = os.path.join(folder, "numbers"), Event(), 8 * n_numbers
        with open(path, "wb"):
            pass

        def follow():
            with open(path, "rb") as file:
                ended = False
                while not ended:
                    ended = over.wait(POLLED)
                    while len(record := file.read(size)) == size:
                        tell(*np.frombuffer(record))
                    file.seek(-len(record), os.SEEK_CUR)

        thread = Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield Relay(path)
        finally:
            over.set()
            thread.join()
