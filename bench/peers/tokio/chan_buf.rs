// chan_buf: one task sends, one receives, over a channel with room for 128; per item.
//
// Unfair: a task has no stack of its own; only an async function can wait.
mod bench;
use std::time::Instant;
use tokio::sync::mpsc;

const ITEMS: u64 = 3_000_000;
const ROOM: usize = 128;

async fn measure() -> f64 {
    let (sender, mut receiver) = mpsc::channel(ROOM);
    let adder = tokio::spawn(async move {
        let mut sum: u64 = 0;
        while let Some(n) = receiver.recv().await {
            sum += n;
        }
        sum
    });
    let start = Instant::now();
    for i in 0..ITEMS {
        sender.send(i).await.expect("a receiver");
    }
    drop(sender);
    let sum = adder.await.expect("a sum");
    let taken = bench::nanoseconds(start);
    bench::check(sum == ITEMS * (ITEMS - 1) / 2, || format!("the sum of the items is {}", sum));
    taken / ITEMS as f64
}

fn main() {
    let threads = bench::argument(1);
    bench::run(threads, async move {
        measure().await;
        for _ in 0..bench::SAMPLES {
            bench::sample("chan_buf", threads, "ns", measure().await);
        }
    });
}
