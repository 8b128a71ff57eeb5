// mutex, mutex_shared: one task locks and unlocks a mutex that nobody else wants, on one thread and on two; mutex2: two
// tasks on two threads do it at the same time. Per lock and unlock.
//
// Unfair: a task has no stack of its own; only an async function can wait.
mod bench;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Mutex;

const TIMES: u64 = 3_000_000;

async fn measure(contenders: u64) -> f64 {
    let mutex = Arc::new(Mutex::new(0));
    let start = Instant::now();
    let tasks: Vec<_> = (0..contenders)
        .map(|_| {
            let mutex = mutex.clone();
            tokio::spawn(async move {
                for _ in 0..TIMES {
                    *mutex.lock().await += 1;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("an end");
    }
    let taken = bench::nanoseconds(start);
    let count: u64 = *mutex.lock().await;
    bench::check(count == contenders * TIMES, || format!("it was locked {} times", count));
    taken / count as f64
}

fn main() {
    let row = std::env::args().nth(1).unwrap_or_else(|| "mutex".to_string());
    let threads = if row == "mutex" { 1 } else { 2 };
    let contenders = if row == "mutex2" { 2 } else { 1 };
    bench::run(threads, async move {
        measure(contenders).await;
        for _ in 0..bench::SAMPLES {
            bench::sample(&row, threads, "ns", measure(contenders).await);
        }
    });
}
