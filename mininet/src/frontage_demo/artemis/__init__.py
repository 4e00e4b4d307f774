# SPDX-License-Identifier: Apache-2.0
"""`python -m frontage_demo.artemis`: Artemis, DNS and anycast over sites at measured distances."""
