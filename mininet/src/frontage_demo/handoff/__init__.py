"""QDSR's figures (ATC 2024) that need delays and losses: balancer, real servers and client, and softswitch's links."""
