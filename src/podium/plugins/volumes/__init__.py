"""The plugins that look at volumes."""
