"""One file per protocol; none imports another, and each registers its name."""
