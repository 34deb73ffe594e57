"""Who owns which fields of an object (`metadata.managedFields`), and objects that are applied."""
