"""Controllers that look after nodes, and after the pods of nodes that are in trouble."""
