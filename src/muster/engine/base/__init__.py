"""What calls, batches and drivers of runs share: time, the run that is driven, its signals, points to be killed at."""
