//! Moments and spans of time for people.

use jiff::tz::TimeZone;
use proto::ids::Timestamp;

/// A wait in whole seconds: `7 s`, `4 min`, `2 h`; rounded up, so that it never says 0 while there is some.
#[must_use]
pub fn wait(seconds: u64) -> String {
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=7_199 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3_600)),
    }
}

/// `14:03:22` in the local time zone.
#[must_use]
pub fn clock(at: Timestamp, zone: &TimeZone) -> String {
    let ms = i64::try_from(at.0).unwrap_or(i64::MAX);
    let moment = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    moment.to_zoned_datetime(zone.clone()).strftime("%H:%M:%S").to_string()
}

/// `2026-11-30 14:03` in the local time zone.
#[must_use]
pub fn date(at: Timestamp, zone: &TimeZone) -> String {
    let ms = i64::try_from(at.0).unwrap_or(i64::MAX);
    let moment = jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    moment.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string()
}

/// `now`, `3 min ago`, `2 days ago`.
#[must_use]
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.0.saturating_sub(at.0) / 1000;
    let (count, unit) = match seconds {
        0..=9 => return "now".to_owned(),
        10..=59 => (seconds, "s"),
        60..=3599 => (seconds / 60, "min"),
        3600..=86_399 => (seconds / 3600, "h"),
        86_400..=172_799 => return "1 day ago".to_owned(),
        _ => (seconds / 86_400, "days"),
    };
    format!("{count} {unit} ago")
}

/// `0.3 s`, `12 s`, `3 min 5 s`, `2 h 10 min`; milliseconds in.
#[must_use]
pub fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    match ms {
        0..=9_999 => format!("{}.{} s", seconds, ms % 1000 / 100),
        10_000..=59_999 => format!("{seconds} s"),
        60_000..=3_599_999 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// `0 s`, `12 s`, `3 min 5 s`: for what is painted again and again, where tenths would only flicker.
#[must_use]
pub fn span_short(ms: u64) -> String {
    if ms < 10_000 { format!("{} s", ms / 1000) } else { span(ms) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_naturally() {
        let spans = [0, 1_240, 12_300, 185_000, 7_800_000].map(span);
        assert_eq!(spans, ["0.0 s", "1.2 s", "12 s", "3 min 5 s", "2 h 10 min"]);
    }

    #[test]
    fn ages_read_naturally_and_a_clock_that_runs_behind_is_now() {
        let now = Timestamp(1_000_000_000_000);
        let ages = [0, 40, 200, 7_300, 90_000, 400_000].map(|s| ago(Timestamp(now.0 - s * 1000), now));
        assert_eq!(ages, ["now", "40 s ago", "3 min ago", "2 h ago", "1 day ago", "4 days ago"]);
        assert_eq!(ago(now.plus_ms(5_000), now), "now");
    }

    #[test]
    fn clocks_are_local() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(clock(Timestamp(1_700_000_000_000), &zone), "00:13:20");
        assert_eq!(date(Timestamp(1_700_000_000_000), &zone), "2023-11-15 00:13");
    }
}
