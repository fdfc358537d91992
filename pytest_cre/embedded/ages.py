"""Spans of time as kubectl writes them."""

from datetime import UTC, datetime


def age_text(since: object, now: datetime) -> str:
    """Give the time since an RFC 3339 moment as kubectl writes it: `5s`, `3m20s`, `2d4h`."""
    if not isinstance(since, str):
        return "<unknown>"
    try:
        moment = datetime.fromisoformat(since)
    except ValueError:
        return "<unknown>"
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return duration_text((now - moment).total_seconds())


def duration_text(seconds: float) -> str:
    """Give a span of time with the precision that kubectl uses for its length."""
    total_s = int(seconds)
    if total_s < 0:
        return "0s"
    minutes, hours, days = total_s // 60, total_s // 3600, total_s // 86400
    if total_s < 120:
        return f"{total_s}s"
    if minutes < 10:
        return f"{minutes}m{total_s % 60}s" if total_s % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    return f"{days // 365}y{days % 365}d"
