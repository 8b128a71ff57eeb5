// skynet: a tree of tasks, ten children each, a million leaves; every task returns the sum of its leaves' numbers.
// mem_skynet: the most bytes that the process had resident.
//
// Unfair: a task has no stack of its own; only an async function can wait.
mod bench;
use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

const FAN_OUT: u64 = 10;
const LEAVES: u64 = 1_000_000;

fn sky(first: u64, leaves: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if leaves == 1 {
            return first;
        }
        let each = leaves / FAN_OUT;
        let children: Vec<_> = (0..FAN_OUT).map(|i| tokio::spawn(sky(first + i * each, each))).collect();
        let mut sum = 0;
        for child in children {
            sum += child.await.expect("a number");
        }
        sum
    })
}

async fn measure() -> f64 {
    let start = Instant::now();
    let sum = sky(0, LEAVES).await;
    let taken = bench::nanoseconds(start);
    bench::check(sum == LEAVES * (LEAVES - 1) / 2, || format!("sum {}", sum));
    taken / 1e6
}

fn main() {
    let threads = bench::argument(1);
    bench::run_tree(threads, async move {
        measure().await;
        for _ in 0..3 {
            bench::sample("skynet", threads, "ms", measure().await);
        }
        bench::sample("mem_skynet", threads, "bytes", bench::peak());
    });
}
