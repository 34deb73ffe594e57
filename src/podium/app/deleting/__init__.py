"""`podium delete`: pods go through eviction, unless somebody says otherwise."""
