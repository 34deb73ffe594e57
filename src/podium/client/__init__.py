"""An HTTP client of API servers."""
