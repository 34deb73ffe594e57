"""Field ownership: the fields of an object, their owners, and the merge of applied configurations."""
