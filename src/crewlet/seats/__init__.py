"""Who runs which seat: leases kept, admission, fence. Runs hooks it knows nothing about."""

from crewlet.seats.host import Host, HostConfig, ReleaseMode, SeatFence, SeatHooks

__all__ = ["Host", "HostConfig", "ReleaseMode", "SeatFence", "SeatHooks"]
