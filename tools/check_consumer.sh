#!/bin/sh
# check_consumer.sh PREFIX BUILD: builds examples/cpp_project against the Coulomb installed in PREFIX, and runs it. What is installed there
# are the public headers, all of them and no other.
set -eu
prefix="$1"
build="$2"
root="$(cd "$(dirname "$0")/.." && pwd)"
diff -r --exclude=.clang-format "$root/include/coulomb" "$prefix/include/coulomb"
rm -rf "$build"
cmake -S "$root/examples/cpp_project" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" --log-level=NOTICE
cmake --build "$build"
"$build/falling_box"
echo "C++ consumer of $prefix: passed"
