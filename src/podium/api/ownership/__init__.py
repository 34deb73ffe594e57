"""Which fields an object has, who owns them, and what comes of it when somebody applies a part of it."""
