// SPDX-License-Identifier: MIT
//! Random programs. `SEED=N` repeats one, `ROUNDS=N` says how many.
use std::panic::catch_unwind;
use std::time::{SystemTime, UNIX_EPOCH};

/// Numbers that follow from a seed.
#[derive(Debug)]
pub struct Mix(pub u64);

impl Mix {
    /// The next number, of 44 bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 20
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.word() as usize % n
    }
}

/// What a variable of the environment says, if it is there.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// The seed that `SEED` says, or a new one.
pub fn seed() -> u64 {
    number("SEED").unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64)
}

/// Runs a program with `SEED`, or with new seeds on three threads, as many on each as `rounds` says.
pub fn programs(rounds: u64, run: fn(u64)) {
    if number("SEED").is_some() {
        return run(seed());
    }
    let (first, rounds) = (seed() % 1_000_000_007, number("ROUNDS").unwrap_or(rounds));
    let failed: Vec<u64> = std::thread::scope(|scope| {
        let threads = [0, 1, 2].map(|t| {
            let seeds = (0..rounds).map(move |round| first + round * 3 + t);
            scope.spawn(|| seeds.filter(|seed| catch_unwind(|| run(*seed)).is_err()).collect::<Vec<u64>>())
        });
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "run again with SEED={failed:?}");
}
