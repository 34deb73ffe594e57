SEED ?= 1
RUNS ?= 100

.PHONY: demo test lint check fuzz lock

demo test lint check lock:
	@python3 tools/dev.py $@

fuzz:
	@python3 tools/dev.py fuzz --seed $(SEED) --runs $(RUNS)
