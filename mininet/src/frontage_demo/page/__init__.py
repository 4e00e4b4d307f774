"""A page of many pictures, each from another real server (QDSR): `make demo QDSR=1`."""
