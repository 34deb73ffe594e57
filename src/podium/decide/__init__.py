"""Pure decisions: functions from a view of the cluster to a plan, without side effects."""
