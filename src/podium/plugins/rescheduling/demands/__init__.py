"""What pods ask of their places, kept count of: what they prefer, and what they require."""
