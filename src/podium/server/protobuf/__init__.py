"""Bodies of requests in protobuf."""
