"""A progress bar for long loops: tqdm's where it is installed, else a line on standard error."""

import sys


class Bar:
    """progress(done, total), called now and then; close() at the end."""

    def __init__(self):
        self._tqdm = None
        self._written = False
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return
        self._tqdm = lambda total: tqdm(total=total, unit="step")
        self._bar = None

    def __call__(self, done, total):
        if self._tqdm is None:
            sys.stderr.write(f"\r{done} of {total} steps ({done / max(total, 1):.0%})")
            sys.stderr.flush()
            self._written = True
            return
        if self._bar is None:
            self._bar = self._tqdm(total)
        self._bar.update(done - self._bar.n)

    def close(self):
        if self._tqdm is not None and self._bar is not None:
            self._bar.close()
        elif self._written:
            sys.stderr.write("\n")
