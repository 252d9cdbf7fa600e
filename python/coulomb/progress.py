"""A progress bar for long loops: tqdm's where it is installed, else a line on standard error."""

import sys


class Bar:
    """progress(done, total, note), called now and then; close() at the end. note: what is worth telling beside it."""

    def __init__(self, unit="step"):
        self._unit = unit
        self._tqdm = None
        self._written = False
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return
        self._tqdm = lambda total: tqdm(total=total, unit=unit)
        self._bar = None

    def __call__(self, done, total, note=""):
        if self._tqdm is None:
            told = f"\r{done} of {total} {self._unit}s ({done / max(total, 1):.0%}) {note}"
            sys.stderr.write(told.ljust(79))
            sys.stderr.flush()
            self._written = True
            return
        if self._bar is None:
            self._bar = self._tqdm(total)
        if note:
            self._bar.set_postfix_str(note, refresh=False)
        self._bar.update(done - self._bar.n)

    def close(self):
        if self._tqdm is not None and self._bar is not None:
            self._bar.close()
        elif self._written:
            sys.stderr.write("\n")
