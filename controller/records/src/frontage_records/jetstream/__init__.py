"""The engine of many sites: NATS JetStream, which has the consensus (a Raft group per stream), the log and the mirrors.

Records of like placement share a stream, a class; a record is the last message of its subject there that counts (`chain`). Every
write says which message it follows, so each record's writes have one order, whoever writes from wherever.
"""
