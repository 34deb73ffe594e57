"""Where an API server is, and how one shows who one is."""
