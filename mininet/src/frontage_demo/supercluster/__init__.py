"""Records on a JetStream supercluster of three regions, under load, while what may fail fails."""
