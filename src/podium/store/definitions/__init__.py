"""Definitions of custom kinds (apiextensions/v1 CustomResourceDefinition), and the kinds that come of them."""
