"""The examples of the documents, for installations without a checkout."""
