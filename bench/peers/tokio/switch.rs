// switch, yield1000: N tasks on one thread that do nothing but yield. One switch, through the scheduler, one way.
//
// Unfair: a task has no stack of its own; only an async function can wait.
mod bench;
use std::time::Instant;

const SWITCHES: usize = 1_000_000;

async fn measure(tasks: usize) -> f64 {
    let turns = SWITCHES / tasks;
    let start = Instant::now();
    let children: Vec<_> = (0..tasks)
        .map(|_| {
            tokio::spawn(async move {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
                turns
            })
        })
        .collect();
    let mut total = 0;
    for child in children {
        total += child.await.expect("turns");
    }
    let taken = bench::nanoseconds(start);
    bench::check(total == turns * tasks, || format!("{} turns", total));
    taken / total as f64
}

fn main() {
    let tasks = bench::argument(2);
    bench::run(1, async move {
        measure(tasks).await;
        for _ in 0..bench::SAMPLES {
            bench::sample(if tasks == 2 { "switch" } else { "yield1000" }, 1, "ns", measure(tasks).await);
        }
    });
}
