//! Sizes in bytes as the command line writes them, and the sweep from one to another.

/// Reads `4096`, `4K`, `64M` or `1G`: powers of 1024.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let invalid = || "write a number of bytes, or one and K, M or G".to_owned();
    let (number, shift) = match text.strip_suffix(['K', 'k', 'M', 'm', 'G', 'g']) {
        Some(number) if text.ends_with(['K', 'k']) => (number, 10),
        Some(number) if text.ends_with(['M', 'm']) => (number, 20),
        Some(number) => (number, 30),
        None => (text, 0),
    };
    let number: u64 = number.parse().map_err(|_| invalid())?;
    number.checked_mul(1 << shift).ok_or_else(invalid)
}

/// How one size follows another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// By multiplying; at least 2.
    Factor(u64),
    /// By adding; at least 1.
    Increment(u64),
}

/// The sizes from `first` to `last`, both included where the step reaches them.
pub(crate) fn sweep(first: u64, last: u64, step: Step) -> impl Iterator<Item = u64> {
    let next = move |size: &u64| match step {
        // From nothing no factor leads on.
        Step::Factor(factor) => size.max(&1).checked_mul(factor),
        Step::Increment(increment) => size.checked_add(increment),
    };
    std::iter::successors(Some(first), next).take_while(move |size| *size <= last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_powers_of_1024() {
        let sizes = ["0", "8", "4K", "3m", "2G"].map(|text| parse_size(text).unwrap());
        assert_eq!(sizes, [0, 8, 4096, 3 << 20, 2 << 30]);
        for text in ["", "K", "-1", "1.5K", "1T", "4 K", "99999999999999G"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_sweep_ends_at_the_last_size_or_before() {
        let sizes = |first, last, step| sweep(first, last, step).collect::<Vec<_>>();
        assert_eq!(sizes(8, 512, Step::Factor(8)), [8, 64, 512]);
        assert_eq!(sizes(0, 5, Step::Factor(2)), [0, 2, 4]);
        assert_eq!(sizes(10, 35, Step::Increment(10)), [10, 20, 30]);
        assert_eq!(sizes(7, 7, Step::Factor(2)), [7]);
        assert_eq!(sizes(u64::MAX - 1, u64::MAX, Step::Increment(9)), [u64::MAX - 1]);
    }
}
