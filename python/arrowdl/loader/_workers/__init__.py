"""Worker processes and the shared memory that their batches arrive in."""
