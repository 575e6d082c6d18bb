"""The broker process, the one connection, and the queue and the record store on JetStream."""
