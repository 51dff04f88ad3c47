"""The command line, one module per group of commands; heavy imports wait until a command runs."""
