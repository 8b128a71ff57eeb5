// select4: one task receives from four channels with room for one by one select; a producer sends to each. Per item.
// select4_buf: the channels have room for 128.
//
// Unfair: a task has no stack of its own; only an async function can wait. A channel with
// room for one takes the place of an unbuffered one, which tokio lacks.
mod bench;
use std::time::Instant;
use tokio::sync::mpsc;

const ITEMS: u64 = 500_000;
const ROOM: usize = 128;

fn produce(room: usize) -> mpsc::Receiver<u64> {
    let (sender, receiver) = mpsc::channel(room);
    tokio::spawn(async move {
        for i in 1..=ITEMS {
            sender.send(i).await.expect("a receiver");
        }
    });
    receiver
}

async fn measure(room: usize) -> f64 {
    let (mut a, mut b, mut c, mut d) = (produce(room), produce(room), produce(room), produce(room));
    let mut last = [0; 4];
    let start = Instant::now();
    for _ in 0..4 * ITEMS {
        let (i, n) = tokio::select! {
            Some(n) = a.recv() => (0, n),
            Some(n) = b.recv() => (1, n),
            Some(n) = c.recv() => (2, n),
            Some(n) = d.recv() => (3, n),
        };
        last[i] += 1;
        bench::check(n == last[i], || format!("item {} of channel {}", n, i));
    }
    bench::nanoseconds(start) / (4 * ITEMS) as f64
}

fn main() {
    let threads = bench::argument(1);
    bench::run(threads, async move {
        measure(1).await;
        measure(ROOM).await;
        for _ in 0..bench::SAMPLES {
            bench::sample("select4", threads, "ns", measure(1).await);
            bench::sample("select4_buf", threads, "ns", measure(ROOM).await);
        }
    });
}
