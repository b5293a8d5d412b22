//! Where a bracket expression of a regular expression begins and ends.
//!
//! Programs differ on whether a delimiter between brackets ends the expression; whoever meets one there refuses.

/// The state after the characters fed so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bracket {
    /// Outside.
    Outside,
    /// Just behind `[` or `[^`, where `]` is a plain character.
    Fresh,
    /// Inside.
    Inside,
    /// Behind a `[` inside.
    MaybeClass,
    /// Inside `[:…:]` and its like.
    Class,
}

impl Bracket {
    /// Whether a delimiter here would be ambiguous.
    pub(super) fn open(self) -> bool {
        self != Self::Outside
    }

    /// The state after `c`; `escaped` characters are plain.
    pub(super) fn after(self, c: char, escaped: bool) -> Self {
        match (self, c) {
            (state, _) if escaped => match state {
                Self::Outside => Self::Outside,
                Self::Class => Self::Class,
                Self::Fresh | Self::Inside | Self::MaybeClass => Self::Inside,
            },
            (Self::Outside, '[') => Self::Fresh,
            (Self::Outside, _) => Self::Outside,
            (Self::Fresh, '^') => Self::Fresh,
            (Self::Fresh | Self::Inside | Self::MaybeClass, '[') => Self::MaybeClass,
            (Self::Fresh, _) => Self::Inside,
            (Self::MaybeClass, ':' | '.' | '=') => Self::Class,
            (Self::Inside | Self::MaybeClass, ']') => Self::Outside,
            (Self::Inside | Self::MaybeClass, _) => Self::Inside,
            (Self::Class, ']') => Self::Inside,
            (Self::Class, _) => Self::Class,
        }
    }
}
