"""The examples of the documents, for whoever has the package alone."""
