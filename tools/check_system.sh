#!/bin/sh
# Says plainly which system packages are missing. Everything else comes from PyPI.
python="${PYTHON:-python3}"
missing=""
need() { missing="$missing $1"; echo "missing: $2" >&2; }

compiler="${CXX:-c++}"
if ! command -v "$compiler" >/dev/null 2>&1; then
  need g++ "a C++20 compiler ($compiler)"
elif ! echo '#include <span>' | "$compiler" -std=c++20 -x c++ -fsyntax-only - 2>/dev/null; then
  need g++ "a compiler and standard library for C++20, such as g++ 11 or newer; $compiler is $("$compiler" --version 2>&1 | head -n 1)"
fi
if ! command -v "$python" >/dev/null 2>&1; then
  need "python3 python3-venv python3-dev" "Python 3.10 or newer ($python)"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  echo "missing: Python 3.10 or newer; $python is $("$python" --version 2>&1). Name another one: make PYTHON=python3.12" >&2
  exit 1
else
  "$python" -c 'import ensurepip, venv' 2>/dev/null || need python3-venv "Python's venv and ensurepip"
  "$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' ||
    need python3-dev "Python's headers (Python.h)"
fi
if [ -n "$missing" ]; then
  echo "On Debian or Ubuntu: apt install$missing" >&2
  exit 1
fi
