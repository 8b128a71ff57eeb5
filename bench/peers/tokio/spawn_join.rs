// spawn_join: spawn a task that returns its argument, await it, again and again.
//
// Unfair: a task has no stack of its own; only an async function can wait.
mod bench;
use std::time::Instant;

const ROUNDS: u64 = 300_000;

async fn measure() -> f64 {
    let mut sum = 0;
    let start = Instant::now();
    for i in 0..ROUNDS {
        sum += tokio::spawn(async move { i }).await.expect("a number");
    }
    let taken = bench::nanoseconds(start);
    bench::check(sum == ROUNDS * (ROUNDS - 1) / 2, || format!("sum {}", sum));
    taken / ROUNDS as f64
}

fn main() {
    let threads = bench::argument(1);
    bench::run(threads, async move {
        measure().await;
        for _ in 0..bench::SAMPLES {
            bench::sample("spawn_join", threads, "ns", measure().await);
        }
    });
}
