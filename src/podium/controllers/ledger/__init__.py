"""The ledger of disruptions: victims, causes, costs and outcomes."""
