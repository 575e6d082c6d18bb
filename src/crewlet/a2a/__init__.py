"""One agent asking another: one question, one answer, then the channel closes."""

from crewlet.a2a.ask_tool import AskTool, Colleagues
from crewlet.a2a.channel_sweep import ChannelSweep
from crewlet.a2a.ids import answer_wake_id, channel_id_of, event_id_of, request_wake_id
from crewlet.a2a.service import A2aService, Answer, AnswerFate

__all__ = [
    "A2aService",
    "Answer",
    "AnswerFate",
    "AskTool",
    "ChannelSweep",
    "Colleagues",
    "answer_wake_id",
    "channel_id_of",
    "event_id_of",
    "request_wake_id",
]
