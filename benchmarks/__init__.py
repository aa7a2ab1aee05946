"""Side-by-side measurements; `python -m benchmarks` runs them, `make bench` installs the peers."""
