"""How a request is HTTP, both ways: paths, query parameters and types of content, each written once.

Nothing here speaks HTTP. Paths and parameters are decoded text, so that who sends and who receives agree on what is
said, and a library for HTTP on either side says it.
"""
