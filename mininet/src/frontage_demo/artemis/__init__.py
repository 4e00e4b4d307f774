"""`python -m frontage_demo.artemis`: Artemis, DNS and anycast over sites at measured distances."""
