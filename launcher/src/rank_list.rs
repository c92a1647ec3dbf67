//! Ranks in a sentence: `rank 3`, `ranks 0, 2-5 and 9`.

use std::fmt;

use lockstep_collectives::Rank;

/// Shows ranks, which are in ascending order, with runs of three and more folded.
pub(crate) struct RankList<'a>(pub(crate) &'a [Rank]);

impl fmt::Display for RankList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut items = Vec::new();
        for run in self.0.chunk_by(|a, b| a.0.checked_add(1) == Some(b.0)) {
            match run {
                [first, _, .., last] => items.push(format!("{}-{}", first.0, last.0)),
                few => items.extend(few.iter().map(|rank| rank.0.to_string())),
            }
        }
        f.write_str(if self.0.len() == 1 { "rank " } else { "ranks " })?;
        match items.split_last() {
            None => f.write_str("(none)"),
            Some((only, [])) => f.write_str(only),
            Some((last, others)) => write!(f, "{} and {last}", others.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_folded() {
        for (ranks, text) in [
            (&[][..], "ranks (none)"),
            (&[3], "rank 3"),
            (&[3, 4], "ranks 3 and 4"),
            (&[3, 4, 5], "ranks 3-5"),
            (&[0, 2, 3, 4, 5, 9], "ranks 0, 2-5 and 9"),
            (&[0, u32::MAX], "ranks 0 and 4294967295"),
        ] {
            let ranks: Vec<_> = ranks.iter().copied().map(Rank).collect();
            assert_eq!(RankList(&ranks).to_string(), text);
        }
    }
}
