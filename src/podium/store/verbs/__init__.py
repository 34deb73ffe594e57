"""What each way to write makes of an object."""
