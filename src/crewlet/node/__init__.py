"""One process: boot, mailboxes, seats established and released, drain. The only place that picks a backend."""
