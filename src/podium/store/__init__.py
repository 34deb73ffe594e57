"""The API server's rules without a transport: versions, patches, watches, admission, quotas, deletion, binding."""
