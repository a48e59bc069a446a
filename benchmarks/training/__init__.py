"""What benchmarks/ablations.py and benchmarks/train.py share."""
