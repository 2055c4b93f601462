# Everything a user or a developer calls. Each target sets up what it needs.
#   make run    the whole chain on the embedded demo, in .venv/
#   make test   the tests that run anywhere: no root, no network after set-up
#   make test-peers   the comparisons with other people's software, which goes to .venv-peers/
#   make bench-gpu TOKENS=FILE.bin NANOGPT=CHECKOUT   training speed on a GPU, beside nanoGPT and
#                     Hugging Face; OPTIONS: see tests/benchmarks/README.md
#   make test-cluster the workflow on a Slurm of two nodes that is made for it here; as root, with
#                     Debian's slurm-wlm and munge. SHORT=1: its first few minutes
PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/pytest -n 2 --dist loadgroup
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c envs/constraints.txt

.PHONY: run test test-all test-page test-peers test-cluster bench-gpu lint clean

run: .venv/run
	$(BIN)/snakemake --cores all all

test: .venv/test
	$(PYTEST) -m "not long and not peers and not cluster and not page"

test-all: .venv/test
	$(PYTEST) -m "not peers and not cluster and not page"

test-page: .venv/test
	@command -v chromium > /dev/null || { echo "test-page needs Debian's chromium: apt-get install chromium"; exit 1; }
	$(PYTEST) -m page tests/page
	@echo "the screenshots are in results/page/: look at them"

test-peers: .venv-peers/.ok
	.venv-peers/bin/python -m pytest -m peers

# One after the other: all tests share the one cluster.
test-cluster: .venv-cluster/.ok
	$(BIN)/python -m tests.cluster.slurm
	$(BIN)/pytest -m "cluster$(if $(SHORT), and not long)" tests/cluster

# The rivals need Triton and transformers, as torch.compile and envs/dev.txt bring them.
bench-gpu: .venv/test
	@test -n "$(TOKENS)" || { echo "bench-gpu: name a file of tokens: make bench-gpu TOKENS=results/data/NAME/tokens/corpus_text_document.bin"; exit 1; }
	$(BIN)/python tests/benchmarks/train.py --tokens $(TOKENS) --output results/bench-gpu \
	  $(if $(NANOGPT),--nanogpt $(NANOGPT)) --breakdown \
	  $(or $(OPTIONS),--sizes 345M 124M 774M 1.5B --contenders ours $(if $(NANOGPT),nanogpt) huggingface --budget 3600)

lint: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/snakefmt --check workflow
	$(BIN)/snakemake --lint

.venv/run: envs/constraints.txt envs/data.txt envs/train.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) -r envs/data.txt -r envs/train.txt
	$(PIP) --no-deps --editable .
	touch $@

.venv/test: .venv/run envs/dev.txt
	$(PIP) -r envs/dev.txt
	touch $@

# Sees the packages of .venv/ behind its own.
.venv-peers/.ok: .venv/test envs/peers.txt
	$(PYTHON) -m venv .venv-peers
	$(BIN)/python -c 'import site; print("import site; site.addsitedir(%r)" % site.getsitepackages()[0])' \
	  > "$$(.venv-peers/bin/python -c 'import site; print(site.getsitepackages()[0])')/web2gpt.pth"
	.venv-peers/bin/pip install --quiet --disable-pip-version-check --no-deps -r envs/peers.txt
	touch $@

# As for the peers; the executor's plugin stays out of .venv/, whose Snakemake it slows down.
.venv-cluster/.ok: .venv/test envs/cluster.txt
	$(PYTHON) -m venv .venv-cluster
	$(BIN)/python -c 'import site; print("import site; site.addsitedir(%r)" % site.getsitepackages()[0])' \
	  > "$$(.venv-cluster/bin/python -c 'import site; print(site.getsitepackages()[0])')/web2gpt.pth"
	.venv-cluster/bin/pip install --quiet --disable-pip-version-check -c envs/constraints.txt \
	  -r envs/cluster.txt
	ln -sf ../../.venv/bin/web2gpt .venv-cluster/bin/web2gpt
	touch $@

clean:
	rm -rf results resources
