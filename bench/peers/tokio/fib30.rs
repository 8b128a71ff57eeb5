// fib30: the 30th Fibonacci number with a task for fib(n - 1) and an await of fib(n - 2).
//
// Unfair: a task has no stack of its own; only an async function can wait.
mod bench;
use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

fn fib(n: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if n < 2 {
            return n;
        }
        let child = tokio::spawn(fib(n - 1));
        let called = fib(n - 2).await;
        child.await.expect("a number") + called
    })
}

async fn measure() -> f64 {
    let start = Instant::now();
    let value = fib(30).await;
    let taken = bench::nanoseconds(start);
    bench::check(value == 832040, || format!("fib(30) = {}", value));
    taken / 1e6
}

fn main() {
    let threads = bench::argument(1);
    bench::run_tree(threads, async move {
        measure().await;
        for _ in 0..3 {
            bench::sample("fib30", threads, "ms", measure().await);
        }
    });
}
