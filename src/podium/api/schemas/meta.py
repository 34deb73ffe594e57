"""What all objects carry, and what many kinds are made of (meta/v1)."""

FIELDS = """
Condition
  type status observedGeneration:long lastTransitionTime:time reason message
LabelSelector
  matchLabels:{str} matchExpressions:[LabelSelectorRequirement]
LabelSelectorRequirement
  key operator values:[str]
ManagedFieldsEntry
  manager operation apiVersion time:time fieldsType fieldsV1:any subresource
ObjectMeta
  name generateName namespace selfLink uid resourceVersion generation:long creationTimestamp:time deletionTimestamp:time
  deletionGracePeriodSeconds:long labels:{str} annotations:{str} ownerReferences:[OwnerReference]#uid finalizers:[str]#
  managedFields:[ManagedFieldsEntry]
PartialObject
  apiVersion kind metadata:ObjectMeta
OwnerReference
  apiVersion kind name uid controller:bool blockOwnerDeletion:bool
"""
