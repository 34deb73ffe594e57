"""Names in the forms that users and cloud providers choose."""

from __future__ import annotations

from hypothesis import strategies as st

_HEX = st.text("0123456789abcdef", min_size=8, max_size=8)
_RANDOM = st.text("bcdfghjklmnpqrstvwxz2456789", min_size=1, max_size=5)
_BYTE = st.integers(0, 255)

AWS = st.builds("ip-10-{}-{}-{}.eu-west-1.compute.internal".format, _BYTE, _BYTE, _BYTE)
GKE = st.builds("gke-prod-pool-{}-{}-{}".format, st.integers(1, 3), _HEX, _RANDOM)
AKS = st.builds("aks-nodepool{}-12345678-vmss{}".format, st.integers(1, 2), _HEX)
LABEL = st.text("ab0-", min_size=0, max_size=30).map(lambda text: f"a{text}b")
SUBDOMAIN = st.lists(LABEL, min_size=1, max_size=6).map(".".join)
KEY = st.builds("{}/{}".format, LABEL, SUBDOMAIN)
REPLICA = st.builds("default/web-{}-{}".format, st.sampled_from(["5d4f8c7b9", "66b5f7c9d8"]), _RANDOM)

NAMES = st.one_of(*(st.sets(kind, min_size=1, max_size=12) for kind in (AWS, GKE, AKS, SUBDOMAIN, KEY, REPLICA)))
"""Different names of one origin."""

MIXED = st.sets(st.one_of(AWS, GKE, AKS, SUBDOMAIN, KEY, REPLICA), min_size=1, max_size=12)
"""Different names of any origin."""
