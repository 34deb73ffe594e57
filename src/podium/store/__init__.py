"""The API server's rules without a transport: versions, watch log, admission, graceful deletion, binding."""
