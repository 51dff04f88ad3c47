"""What the benchmarks of `f3 bench` measure with; commands and output are in `f3.commands`."""
