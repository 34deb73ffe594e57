"""Gang scheduling: one attempt for all pods of a PodGroup, common bindings, and the release of incomplete gangs."""
