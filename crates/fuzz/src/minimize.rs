//! Minimizes a failing input.

use std::time::{Duration, Instant};

/// The maximum time for minimizing.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Returns the smallest input found that still fails: lines are removed first, then bytes.
pub(crate) fn minimize(input: &[u8], fails: &dyn Fn(&[u8]) -> bool) -> Vec<u8> {
    let start = Instant::now();
    let lines = |input: &[u8]| {
        let lines = input.split_inclusive(|byte| *byte == b'\n');
        lines.map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    let bytes = |input: &[u8]| input.iter().map(|byte| vec![*byte]).collect();
    let input = remove_chunks(lines(input), fails, start);
    remove_chunks(bytes(&input), fails, start)
}

/// Removes ever shorter runs of chunks as long as the rest still fails.
fn remove_chunks(
    mut pieces: Vec<Vec<u8>>,
    fails: &dyn Fn(&[u8]) -> bool,
    start: Instant,
) -> Vec<u8> {
    let mut run = pieces.len() / 2;
    while run > 0 && start.elapsed() < TIME_LIMIT {
        let mut at = 0;
        while at < pieces.len() && start.elapsed() < TIME_LIMIT {
            let end = (at + run).min(pieces.len());
            let rest = [&pieces[..at], &pieces[end..]].concat();
            if fails(&rest.concat()) {
                pieces = rest;
            } else {
                at = end;
            }
        }
        run /= 2;
    }
    pieces.concat()
}

#[cfg(test)]
mod tests {
    use super::minimize;

    #[test]
    fn what_does_not_matter_is_left_out() {
        let input = b"one\ntwo\nthree bad things\nfour\n".to_vec();
        let has_bad = |input: &[u8]| input.windows(3).any(|part| part == b"bad");
        assert_eq!(minimize(&input, &has_bad), b"bad");
    }
}
