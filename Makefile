# make demo | test | bench | docs | format: each makes .venv, installs what it needs from PyPI, builds, runs.
# Builds are kept in build/: after a change only what depends on it is compiled again.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
RELEASE := build/release
PREFIX := $(CURDIR)/build/prefix
NIMBLE := build/nimble_env
RLLIB := build/rllib_env

export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Warnings of the compiler are errors in what is tested: make test WERROR=OFF for a compiler that knows others.
WERROR ?= ON

.PHONY: help demo test quick lint bench bench-nimble rllib sweep fuzz fuzz-smoke sanitize soak audit models coverage mutate docs docs-links format install package wheel release system cpp \
  test-cpp test-python test-simd test-docs test-includes test-consumer test-wheel clean
.DEFAULT_GOAL := help

help:
	@echo "make demo          a robot falls and stands; table and pictures (some minutes the first time)"
	@echo "make test          every test: C++, Python, instruction sets, the site, rules of the house, C++ consumer, clean wheel"
	@echo "make quick         the quick tests, C++ and Python: two minutes after a build"
	@echo "make test-simd     a core of the tests with each instruction set of this processor; part of make test"
	@echo "make lint          clang-format, ruff, clang-tidy, dependency rule, citations, Markdown; changes nothing"
	@echo "make format        clang-format, ruff, Markdown"
	@echo "make sanitize      fuzz-smoke and a core of the Python tests under sanitizers; CI runs it where time is left"
	@echo "make fuzz          an hour of each fuzzer under sanitizers (clang)"
	@echo "make fuzz-smoke    the C++ tests and a minute of each fuzzer under sanitizers (clang)"
	@echo "make audit         an hour of random scenes against rules without a reference; tests/robustness/audit.md"
	@echo "make models        public robot files of the installed packages, beside MuJoCo; benchmarks/results/models.md"
	@echo "make soak          ten million steps of scenes that must not drift; tests/robustness/soak.md"
	@echo "make sweep         derivatives of random trees and scenes against differences; tests/gradient/random_*.md"
	@echo "make mutate        200 faults planted in derivatives, each to be caught; tests/robustness/mutations.md"
	@echo "make coverage      lines and branches of constraints, solvers and derivatives that a core of the tests reaches"
	@echo "make bench         time per step and per Jacobian, beside MuJoCo and, where it installs, Nimble"
	@echo "make rllib         RLlib's PPO on a hopper, in an environment of its own (it pins Gymnasium)"
	@echo "make docs          the site in build/docs/html, its notebooks executed; make docs-links follows outer links"
	@echo "make wheel         a wheel in dist/, tried in an empty environment; make release: all that is uploaded"

demo: package
	$(VENV)/bin/coulomb demo

test: test-includes test-cpp test-python test-simd test-docs test-consumer test-wheel

# Tests without the marker `slow` (tests/README.md).
quick: test-includes cpp install
	ctest --test-dir $(RELEASE) --output-on-failure --no-tests=error --parallel $(JOBS) --label-exclude slow
	$(PY) -m pytest tests -m "not slow" -n $(JOBS)

bench: install
	$(PY) benchmarks/run.py
	$(PY) benchmarks/trajectories.py
	$(PY) benchmarks/growing.py
	$(PY) benchmarks/batches.py
	$(PY) benchmarks/environments.py
	$(PY) benchmarks/scaling.py
	$(PY) benchmarks/control.py
	$(PY) benchmarks/pushes.py
	$(PY) benchmarks/pictures.py
	$(PY) benchmarks/implicit.py
	$(PY) benchmarks/impacts.py
	@if $(MAKE) --no-print-directory $(NIMBLE)/.installed; then $(NIMBLE)/bin/python benchmarks/nimble_race.py; \
	else echo "left out: Nimble beside Coulomb; PyPI has no nimblephysics for this Python and system"; fi

bench-nimble: install $(NIMBLE)/.installed
	$(NIMBLE)/bin/python benchmarks/nimble_race.py

# RLlib learns for a minute on coulomb/Hopper-v5.
rllib: install $(RLLIB)/.installed
	$(RLLIB)/bin/python tools/rllib_hopper.py

sweep: install
	$(PY) tests/gradient/sweep_random_trees.py
	$(PY) tests/gradient/sweep_random_scenes.py --jobs $(JOBS)

# The C++ tests, the inputs that were kept and new ones, by clang with address and undefined-behaviour sanitizers.
FUZZ_SECONDS ?= 3600
fuzz: $(VENV)/.installed
	$(PY) tools/fuzz.py --seconds $(FUZZ_SECONDS) --jobs $(JOBS) --report tests/fuzz/report.md

fuzz-smoke: $(VENV)/.installed
	$(PY) tools/fuzz.py --seconds 60 --jobs $(JOBS)
	ctest --test-dir build/fuzz --output-on-failure --no-tests=error --parallel $(JOBS) --label-exclude slow

# That, and a core of the Python tests with the module of the same build.
sanitize: fuzz-smoke
	$(PY) tools/sanitized_tests.py --jobs $(JOBS)

soak: install
	$(PY) tools/soak.py --report tests/robustness/soak.md

# Random scenes, all laws and steppers: energy, momentum, company, symmetry, order, the contact law, MuJoCo. Fails where a rule is broken.
AUDIT_SECONDS ?= 3600
audit: install
	$(PY) tools/audit.py --seconds $(AUDIT_SECONDS) --jobs $(JOBS) --report tests/robustness/audit.md

# The robot files of the packages that are installed, or of FOLDERS: load, move as in MuJoCo, step, differentiate. Fetches nothing.
FOLDERS ?=
models: install
	$(PY) tools/models.py $(FOLDERS) --jobs $(JOBS) --report benchmarks/results/models.md

# Built by GCC with --coverage; needs gcovr.
coverage: $(VENV)/.installed
	$(PY) tools/coverage.py --jobs $(JOBS) --report tests/coverage.md

# Half an hour and more: each mutation is compiled, linked and looked at by the tests that reach it.
MUTATIONS ?= 200
mutate: $(VENV)/.installed
	$(PY) tools/mutate.py --count $(MUTATIONS) --report tests/robustness/mutations.md

# The site, in build/docs/html: pages, executed notebooks, the Python interface. Warnings, links that lead nowhere and errors of notebooks fail.
SPHINX := $(PY) -m sphinx -c docs -W --keep-going -q
docs: install $(VENV)/.docs
	$(SPHINX) -b html . build/docs/html
	@echo "open build/docs/html/index.html"

# External links, which needs a network.
docs-links: install $(VENV)/.docs
	$(SPHINX) -b linkcheck . build/docs/links

test-docs: docs
	$(PY) tests/docs/check_site.py build/docs/html

$(VENV)/.docs: pyproject.toml $(VENV)/.installed
	$(PY) tools/requirements.py docs > $(VENV)/requirements-docs.txt
	$(PY) -m pip install --quiet -r $(VENV)/requirements-docs.txt
	@touch $@

format: $(VENV)/.lint
	find $(CPP_FOLDERS) -name '*.[ch]pp' | xargs $(VENV)/bin/clang-format -i
	$(VENV)/bin/ruff format . && $(VENV)/bin/ruff check --fix .
	$(PY) tools/wrap_markdown.py

# clang-tidy reads from build/release how files are compiled.
lint: $(VENV)/.lint test-includes cpp
	find $(CPP_FOLDERS) -name '*.[ch]pp' | xargs $(VENV)/bin/clang-format --dry-run --Werror
	$(VENV)/bin/ruff format --check . && $(VENV)/bin/ruff check .
	$(PY) tools/wrap_markdown.py --check
	$(PY) tools/tidy.py --required --jobs $(JOBS)

CPP_FOLDERS := include src python tests examples
$(VENV)/.lint: $(VENV)/.installed
	$(PY) -m pip install --quiet $$($(PY) tools/requirements.py format)
	@touch $@

# --- what they stand on -------------------------------------------------------------------------------------------------------

system:
	@PYTHON="$(PYTHON)" sh tools/check_system.sh

# What builds the package and runs the demo.
$(VENV)/.demo: pyproject.toml tools/requirements.py | system
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --upgrade pip
	$(PY) tools/requirements.py build runtime demo > $(VENV)/requirements.txt
	$(PY) -m pip install --quiet cmake ninja -r $(VENV)/requirements.txt
	@touch $@

# And what tests, examples and benchmarks need.
$(VENV)/.installed: $(VENV)/.demo
	$(PY) tools/requirements.py test > $(VENV)/requirements-test.txt
	$(PY) -m pip install --quiet -r $(VENV)/requirements-test.txt
	@touch $@

install: $(VENV)/.installed package

# The package, built into $(VENV) without build isolation so that the build folder can be kept.
package: $(VENV)/.demo
	$(PY) -m pip install --quiet --no-build-isolation --no-deps --force-reinstall -C "build-dir=build/{wheel_tag}" .

# Nimble needs NumPy 1 and names packages that the benchmark does without: an environment with these two, all else from $(VENV).
$(NIMBLE)/.installed: $(VENV)/.installed
	rm -rf $(NIMBLE)
	$(PYTHON) -m venv $(NIMBLE)
	$(NIMBLE)/bin/python -m pip install --quiet --only-binary :all: --no-deps "numpy<2" nimblephysics
	$(PY) -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
	  > "$$($(NIMBLE)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/coulomb_env.pth"
	@touch $@

# RLlib names one version of Gymnasium: an environment with that, all else from $(VENV).
$(RLLIB)/.installed: $(VENV)/.installed
	rm -rf $(RLLIB)
	$(PYTHON) -m venv $(RLLIB)
	$(RLLIB)/bin/python -m pip install --quiet "ray[rllib]"
	$(PY) -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
	  > "$$($(RLLIB)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/coulomb_env.pth"
	@touch $@

# The library, its C++ tests, and an install prefix.
cpp: $(VENV)/.installed
	cmake --preset release -DPython_EXECUTABLE="$(CURDIR)/$(PY)" -DCMAKE_INSTALL_PREFIX="$(PREFIX)" -DCOULOMB_WERROR=$(WERROR) \
	  --log-level=NOTICE
	cmake --build $(RELEASE)
	rm -rf $(PREFIX)/include
	cmake --install $(RELEASE) > $(RELEASE)/install.log

test-includes:
	$(PYTHON) tests/check_includes.py
	$(PYTHON) tools/check_citations.py

test-cpp: cpp
	ctest --test-dir $(RELEASE) --output-on-failure --no-tests=error --parallel $(JOBS)

# A file stays on one process: its tests share what they have compared.
test-python: install
	$(PY) -m pytest tests -n $(JOBS) --dist loadfile

# Kernels and solvers in C++, and the core (tests/core_tests.py), with each instruction set that the processor has but the best: all other tests use that.
test-simd: cpp install
	sets=$$($(PY) tools/instruction_sets.py --others) || exit 1; \
	for set in $$sets; do \
	  echo "COULOMB_SIMD=$$set"; \
	  COULOMB_SIMD=$$set ctest --test-dir $(RELEASE) --output-on-failure --no-tests=error --parallel $(JOBS) \
	    -R 'unit\.(dynamics|linalg|solvers)' --label-exclude slow || exit 1; \
	  COULOMB_SIMD=$$set $(PY) -m pytest tests -m core -n $(JOBS) || exit 1; \
	done

test-consumer: cpp install
	sh tools/check_consumer.sh "$(PREFIX)" build/consumer-prefix
	sh tools/check_consumer.sh "$$($(PY) tools/wheel_prefix.py)" build/consumer-wheel

# A wheel as pip makes it, with build isolation, and what a user gets of it in an empty environment. Repeated only when a source changed.
WHEEL_SOURCES := $(shell find include src python cmake CMakeLists.txt pyproject.toml -type f -not -name '*.pyc' 2>/dev/null)
wheel: dist/.checked
test-wheel: dist/.checked
dist/.checked: $(WHEEL_SOURCES) tools/check_wheel.py | system
	rm -rf dist
	$(PYTHON) -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(PYTHON) tools/check_wheel.py dist/coulomb-*.whl
	sh tools/check_consumer.sh "$$(build/clean_env/bin/python tools/wheel_prefix.py)" build/consumer-clean
	@touch $@

# What is uploaded: the source, the wheel under the tag of the systems that it runs on, and their checksums.
release: $(VENV)/.installed dist/.checked
	$(PY) tools/release.py

clean:
	rm -rf build
