"""The reconstruction of disruptions from a cluster's objects and Events, without a ledger."""
