"""Who runs which seat: leases kept, placement, admission, fence, watchdog. Runs hooks it knows nothing about."""

from crewlet.seats.hooks import ReleaseMode, SeatHooks
from crewlet.seats.host import HEARTBEAT, SWEEP, Host
from crewlet.seats.host_config import HostConfig
from crewlet.seats.placement import ANYWHERE, PlacedSeat, Placement, unplaceable_seats
from crewlet.seats.presence import NodeRow, node_row, unmanned_roles
from crewlet.seats.seat_fence import SeatFence
from crewlet.seats.watchdog import EXIT_WEDGED, Watchdog

__all__ = [
    "ANYWHERE",
    "EXIT_WEDGED",
    "HEARTBEAT",
    "SWEEP",
    "Host",
    "HostConfig",
    "NodeRow",
    "PlacedSeat",
    "Placement",
    "ReleaseMode",
    "SeatFence",
    "SeatHooks",
    "Watchdog",
    "node_row",
    "unmanned_roles",
    "unplaceable_seats",
]
