//! Settings with a unit: spans of time (`90s`, `2m`, `1h30m`, `250ms`) and sizes (`64MiB`, `500kB`, `4096`).

use std::fmt;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};

/// A span of time in whole milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(Duration);

impl Span {
    /// So many seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }

    /// So many milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// As a duration.
    #[must_use]
    pub fn get(self) -> Duration {
        self.0
    }

    /// In milliseconds.
    #[must_use]
    pub fn ms(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }

    /// Reads `250ms`, `90s`, `2m`, `1h30m`, `1d`, or a bare number of seconds.
    ///
    /// # Errors
    /// A sentence that shows the accepted form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a span of time; write it like 250ms, 90s, 2m or 1h30m");
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(wrong());
        }
        let mut total = Duration::ZERO;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
            rest = &rest[digits..];
            let unit = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let ms: u64 = match &rest[..unit] {
                "ms" => 1,
                "" | "s" => 1_000,
                "m" | "min" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                _ => return Err(wrong()),
            };
            rest = &rest[unit..];
            total += Duration::from_millis(number.checked_mul(ms).ok_or_else(wrong)?);
        }
        Ok(Self(total))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.ms();
        match ms {
            0 => f.write_str("0s"),
            _ if ms.is_multiple_of(3_600_000) => write!(f, "{}h", ms / 3_600_000),
            _ if ms.is_multiple_of(60_000) => write!(f, "{}m", ms / 60_000),
            _ if ms.is_multiple_of(1_000) => write!(f, "{}s", ms / 1_000),
            _ => write!(f, "{ms}ms"),
        }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl Size {
    /// Reads `4096`, `500kB`, `64MiB`, `2GiB`.
    ///
    /// # Errors
    /// A sentence that shows the accepted form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a size; write it like 4096, 500kB, 64MiB or 2GiB");
        let text_trimmed = text.trim();
        let digits = text_trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(text_trimmed.len());
        let number: u64 = text_trimmed[..digits].parse().map_err(|_| wrong())?;
        let factor: u64 = match text_trimmed[digits..].trim() {
            "" | "B" => 1,
            "kB" => 1_000,
            "KiB" => 1 << 10,
            "MB" => 1_000_000,
            "MiB" => 1 << 20,
            "GB" => 1_000_000_000,
            "GiB" => 1 << 30,
            _ => return Err(wrong()),
        };
        number.checked_mul(factor).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0"),
            n if n.is_multiple_of(1 << 30) => write!(f, "{}GiB", n >> 30),
            n if n.is_multiple_of(1 << 20) => write!(f, "{}MiB", n >> 20),
            n if n.is_multiple_of(1 << 10) => write!(f, "{}KiB", n >> 10),
            n => write!(f, "{n}"),
        }
    }
}

impl fmt::Debug for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An amount of US dollars, in billionths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Money(pub u64);

impl Money {
    /// So many dollars.
    #[must_use]
    pub const fn from_usd(usd: u64) -> Self {
        Self(usd * 1_000_000_000)
    }

    /// Reads `5`, `0.25`, `12.50`.
    ///
    /// # Errors
    /// A sentence that shows the accepted form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not an amount of dollars; write it like 5 or 0.25");
        const DIGITS: usize = 9;
        let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
        if whole.is_empty() || part.len() > DIGITS || !digits(whole) || !digits(part) {
            return Err(wrong());
        }
        let part: u64 = format!("{part:0<DIGITS$}").parse().map_err(|_| wrong())?;
        let whole: u64 = whole.parse().map_err(|_| wrong())?;
        whole.checked_mul(1_000_000_000).and_then(|whole| whole.checked_add(part)).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 1_000_000_000, format!("{:09}", self.0 % 1_000_000_000));
        match part.trim_end_matches('0') {
            "" => write!(f, "{whole}"),
            part => write!(f, "{whole}.{part}"),
        }
    }
}

impl fmt::Debug for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

macro_rules! as_text {
    ($type:ident) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.to_string())
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).map_err(D::Error::custom)
            }
        }
    };
}

as_text!(Span);
as_text!(Size);
as_text!(Money);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_back_as_they_are_shown() {
        for (text, ms) in [("250ms", 250), ("90s", 90_000), ("2m", 120_000), ("1h30m", 5_400_000), ("7", 7_000)] {
            let span = Span::parse(text).unwrap();
            assert_eq!(span.ms(), ms, "{text}");
            assert_eq!(Span::parse(&span.to_string()).unwrap(), span);
        }
        for text in ["", "s", "5 parsecs", "-1s", "1.5s"] {
            assert!(Span::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_read_back_as_they_are_shown() {
        for (text, nano) in [("5", 5_000_000_000), ("0.25", 250_000_000), ("0", 0), ("0.000000001", 1)] {
            let money = Money::parse(text).unwrap();
            assert_eq!((money.0, money.to_string().as_str()), (nano, text));
        }
        for text in ["", ".5", "1,50", "-1", "1.0000000001", "99999999999999"] {
            assert!(Money::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_read_back_as_they_are_shown() {
        for (text, bytes) in [("4096", 4096), ("500kB", 500_000), ("64MiB", 64 << 20), ("2GiB", 2 << 30)] {
            let size = Size::parse(text).unwrap();
            assert_eq!(size.0, bytes, "{text}");
            assert_eq!(Size::parse(&size.to_string()).unwrap(), size);
        }
        assert!(Size::parse("many").is_err());
    }
}
