"""Instruction sets that this processor and the installed library have, the best one last; --others: without the best."""

import os
import subprocess
import sys

SETS = ("baseline", "avx2", "avx512")  # as COULOMB_SIMD names them


def available():
    """Of those: a process that is asked to use another refuses to import the library."""
    code = "import coulomb; print(coulomb.instruction_set())"
    found = []
    for name in SETS:
        environment = os.environ | {"COULOMB_SIMD": name}
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        if out.returncode == 0 and out.stdout.split() == [name]:
            found.append(name)
        elif "COULOMB_SIMD" not in out.stderr:
            sys.exit(f"COULOMB_SIMD={name}: {out.stderr.strip() or out.stdout.strip()}")
    return found


if __name__ == "__main__":
    sets = available()
    print(*(sets[:-1] if "--others" in sys.argv[1:] else sets))
