"""Logs are events with fields, written to standard error; configured once, by whoever starts the process."""

from __future__ import annotations

import logging
import sys
from typing import Final, Literal, TextIO, cast

import structlog

from crewlet.base.standard_streams import LastingStream

__all__ = ["LogFormat", "LogLevel", "configure_logging"]

LogLevel = Literal["debug", "info", "warn", "error"]
LogFormat = Literal["console", "text", "json"]

_LEVELS: Final[dict[LogLevel, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}


def configure_logging(level: LogLevel, form: LogFormat) -> None:
    """From now on write events of ``level`` and above: for people in colour, as plain text, or as JSON lines.

    A log that nobody reads any more is dropped and raises nothing.
    """
    lasting = cast("TextIO", LastingStream(sys.stderr))
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *_rendering(form),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(lasting),
        cache_logger_on_first_use=False,
    )
    # Libraries that log the standard way are heard from warnings on, through the same stream.
    logging.basicConfig(stream=lasting, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")


def _rendering(form: LogFormat) -> list[structlog.typing.Processor]:
    match form:
        case "json":
            # Without locals: a frame's variables may hold a key.
            stacks = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
            return [structlog.processors.ExceptionRenderer(stacks), structlog.processors.JSONRenderer()]
        case "text":
            return [
                structlog.processors.format_exc_info,
                structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"]),
            ]
        case "console":
            return [
                structlog.dev.ConsoleRenderer(
                    colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
                )
            ]
