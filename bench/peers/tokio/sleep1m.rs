// sleep1m, sleep1m_cpu: a million tasks sleep 0 to 2 s at random, the same times as in sleep1m.c.
//
// Unfair: a task has no stack of its own; only an async function can wait. A timer is exact
// to a millisecond.
mod bench;
use std::time::{Duration, Instant};

const TASKS: u64 = 1_000_000;
const LONGEST: u64 = 2_000_000_000;

fn main() {
    if std::env::args().nth(1).map_or(false, |kind| kind == "shared") {
        bench::leave_out("tokio's tasks have no stacks that they could share");
    }
    bench::run(1, async move {
        let used = bench::cpu();
        let start = Instant::now();
        let tasks: Vec<_> = (0..TASKS)
            .map(|i| tokio::spawn(async move { tokio::time::sleep(Duration::from_nanos(bench::random(i) % LONGEST)).await }))
            .collect();
        let mut woken = 0;
        for task in tasks {
            task.await.expect("an end");
            woken += 1;
        }
        let taken = bench::nanoseconds(start);
        bench::check(woken == TASKS, || format!("{} tasks woke up", woken));
        bench::sample("sleep1m", 1, "s", taken / 1e9);
        bench::sample("sleep1m_cpu", 1, "s", bench::cpu() - used);
    });
}
