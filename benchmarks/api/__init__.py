"""What /v1 adds to the bare engine."""
