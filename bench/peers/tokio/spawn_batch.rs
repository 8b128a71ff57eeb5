// spawn_batch: spawn 10 000 tasks, then await them all, the newest first. Per task.
//
// Unfair: a task has no stack of its own; only an async function can wait.
mod bench;
use std::time::Instant;

const TASKS: u64 = 10_000;
const BATCHES: u64 = 30;

async fn measure() -> f64 {
    let mut sum = 0;
    let start = Instant::now();
    for _ in 0..BATCHES {
        let children: Vec<_> = (0..TASKS).map(|i| tokio::spawn(async move { i })).collect();
        for child in children.into_iter().rev() {
            sum += child.await.expect("a number");
        }
    }
    let taken = bench::nanoseconds(start);
    bench::check(sum == BATCHES * TASKS * (TASKS - 1) / 2, || format!("sum {}", sum));
    taken / (BATCHES * TASKS) as f64
}

fn main() {
    let threads = bench::argument(1);
    bench::run(threads, async move {
        measure().await;
        for _ in 0..bench::SAMPLES {
            bench::sample("spawn_batch", threads, "ns", measure().await);
        }
    });
}
