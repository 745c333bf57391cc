"""Arrow IPC files: mapped, or read into memory."""
