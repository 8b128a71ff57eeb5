// chan_rtt: two tasks send one value back and forth over two channels with room for one; a round trip.
//
// Unfair: a task has no stack of its own; only an async function can wait. A channel with
// room for one takes the place of an unbuffered one, which tokio lacks.
mod bench;
use std::time::Instant;
use tokio::sync::mpsc;

const ROUND_TRIPS: u64 = 1_000_000;

async fn measure() -> f64 {
    let (there, mut questions) = mpsc::channel(1);
    let (back, mut answers) = mpsc::channel(1);
    tokio::spawn(async move {
        while let Some(n) = questions.recv().await {
            if back.send(n).await.is_err() {
                break;
            }
        }
    });
    let mut sum = 0;
    let start = Instant::now();
    for i in 0..ROUND_TRIPS {
        there.send(i).await.expect("a receiver");
        sum += answers.recv().await.unwrap_or(0);
    }
    let taken = bench::nanoseconds(start);
    bench::check(sum == ROUND_TRIPS * (ROUND_TRIPS - 1) / 2, || format!("the sum of the answers is {}", sum));
    taken / ROUND_TRIPS as f64
}

fn main() {
    if std::env::args().nth(2).is_some() {
        bench::leave_out("tokio has no call that keeps the other thread");
    }
    let threads = bench::argument(1);
    bench::run(threads, async move {
        measure().await;
        for _ in 0..bench::SAMPLES {
            bench::sample("chan_rtt", threads, "ns", measure().await);
        }
    });
}
