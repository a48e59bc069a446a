"""What benchmarks/judges.py gives to judges: attentions and blocks, right and wrong."""
