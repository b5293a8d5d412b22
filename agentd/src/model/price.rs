//! What requests cost: the price list of the API's facts (section 11.4) and its formula (section 9). Pure.
//!
//! Prices are in billionths of a dollar a token, so that sums are whole numbers. A model that is not listed has no price;
//! its tokens are counted all the same.

/// Prices of one model, in billionths of a US dollar a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Prices {
    input: u64,
    output: u64,
    write_5m: u64,
    write_1h: u64,
    read: u64,
}

/// What one reply is billed for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bill {
    pub(super) input: u64,
    pub(super) write_5m: u64,
    pub(super) write_1h: u64,
    pub(super) read: u64,
    pub(super) output: u64,
    /// Inference in the United States only.
    pub(super) us: bool,
    /// The fast mode.
    pub(super) fast: bool,
}

const fn prices(input: u64, output: u64, write_5m: u64, write_1h: u64, read: u64) -> Prices {
    Prices { input, output, write_5m, write_1h, read }
}

/// Above this prompt all tokens of a request to Haiku 5.5 cost more.
const HAIKU_LONG_PROMPT: u64 = 100_000;

const HAIKU_SHORT: Prices = prices(100, 500, 125, 200, 10);
const HAIKU_LONG: Prices = prices(500, 2_500, 625, 1_000, 50);

/// Beginnings of model ids; the first that fits counts, so the longer ones stand first.
const LIST: [(&str, Prices); 14] = [
    ("claude-fable-5-2", prices(8_000, 40_000, 10_000, 16_000, 200)),
    ("claude-fable-5-1", prices(10_000, 50_000, 12_500, 20_000, 250)),
    ("claude-fable-5", prices(10_000, 50_000, 12_500, 20_000, 1_000)),
    ("claude-mythos-5", prices(10_000, 50_000, 12_500, 20_000, 1_000)),
    ("claude-opus-5-5", prices(4_000, 20_000, 5_000, 8_000, 200)),
    ("claude-opus-5", prices(5_000, 25_000, 6_250, 10_000, 500)),
    ("claude-opus-4-8", prices(5_000, 25_000, 6_250, 10_000, 500)),
    ("claude-opus-4-7", prices(5_000, 25_000, 6_250, 10_000, 500)),
    ("claude-opus-4-6", prices(5_000, 25_000, 6_250, 10_000, 500)),
    ("claude-opus-4-5", prices(5_000, 25_000, 6_250, 10_000, 500)),
    ("claude-sonnet-5-5", prices(2_000, 10_000, 2_500, 4_000, 100)),
    ("claude-sonnet-5", prices(2_000, 10_000, 2_500, 4_000, 200)),
    ("claude-sonnet-4", prices(3_000, 15_000, 3_750, 6_000, 300)),
    ("claude-haiku-4-5", prices(1_000, 5_000, 1_250, 2_000, 100)),
];

impl Bill {
    /// Both together.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            write_5m: self.write_5m + other.write_5m,
            write_1h: self.write_1h + other.write_1h,
            read: self.read + other.read,
            output: self.output + other.output,
            us: self.us || other.us,
            fast: self.fast || other.fast,
        }
    }

    /// The tokens before the answer.
    pub(super) fn prompt(&self) -> u64 {
        self.input + self.write_5m + self.write_1h + self.read
    }

    /// Its price with this model.
    pub(super) fn nanousd(&self, model: &str) -> Option<u64> {
        // Gateways put a provider's name before the model's, and some write its version with a dot.
        let name = model.rsplit('/').next().unwrap_or(model).replace('.', "-");
        let prices = if name.starts_with("claude-haiku-5-5") {
            if self.prompt() > HAIKU_LONG_PROMPT { HAIKU_LONG } else { HAIKU_SHORT }
        } else {
            LIST.iter().find(|(start, _)| name.starts_with(start))?.1
        };
        let sum = [
            (self.input, prices.input),
            (self.write_5m, prices.write_5m),
            (self.write_1h, prices.write_1h),
            (self.read, prices.read),
            (self.output, prices.output),
        ]
        .iter()
        .fold(0_u64, |sum, (tokens, price)| sum.saturating_add(tokens.saturating_mul(*price)));
        let sum = if self.us { sum.saturating_add(sum / 10) } else { sum };
        Some(if self.fast { sum.saturating_mul(2) } else { sum })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLION: Bill = Bill {
        input: 1_000_000,
        write_5m: 1_000_000,
        write_1h: 1_000_000,
        read: 1_000_000,
        output: 1_000_000,
        us: false,
        fast: false,
    };

    /// In thousandths of a dollar.
    fn cost(model: &str, bill: Bill) -> Option<u64> {
        Some(bill.nanousd(model)? / 1_000_000)
    }

    #[test]
    fn each_kind_of_token_has_its_own_price() {
        let table = [
            ("claude-fable-5-2", 74_200),
            ("claude-fable-5-1", 92_750),
            ("claude-fable-5", 93_500),
            ("claude-mythos-5-2", 93_500),
            ("claude-opus-5-5", 37_200),
            ("claude-opus-4-8", 46_750),
            ("claude-sonnet-5-5", 18_600),
            ("claude-sonnet-5", 18_700),
            ("claude-sonnet-4-6", 28_050),
            ("claude-haiku-4-5-20251001", 9_350),
        ];
        for (model, expected) in table {
            assert_eq!(cost(model, MILLION), Some(expected), "{model}");
        }
        assert_eq!(cost("anthropic/claude-opus-5.5", MILLION), Some(37_200));
        assert_eq!(cost("qwen", MILLION), None);
    }

    #[test]
    fn a_long_prompt_of_haiku_costs_more_for_all_its_tokens() {
        let bill = |read| Bill { read, output: 1_000, ..Bill::default() };
        assert_eq!(bill(100_000).nanousd("claude-haiku-5-5"), Some(100_000 * 10 + 1_000 * 500));
        assert_eq!(bill(100_001).nanousd("claude-haiku-5-5"), Some(100_001 * 50 + 1_000 * 2_500));
    }

    #[test]
    fn place_and_speed_have_their_price() {
        let bill = Bill { us: true, ..MILLION };
        assert_eq!(cost("claude-opus-5-5", bill), Some(40_920));
        assert_eq!(cost("claude-opus-5-5", Bill { fast: true, ..bill }), Some(81_840));
    }
}
