"""What each verb comes to, by what it is about: objects, deletions, pods, scales, accounts, namespaces."""
