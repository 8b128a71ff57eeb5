// What the tokio programs share: samples, checks and the runtime, as in bench.h. A program of one thread takes tokio's
// runtime of the current thread. Trees take the runtime of several threads even for one: it runs the newest task next,
// and so keeps few of them alive.
#![allow(dead_code)]
use std::future::Future;
use std::time::Instant;
use tokio::runtime::Builder;

pub const SAMPLES: usize = 5;

pub fn argument(otherwise: usize) -> usize {
    match std::env::args().nth(1) {
        None => otherwise,
        Some(text) => {
            let value = text.parse().unwrap_or(0);
            check(value > 0, || format!("argument {} is not a positive number", text));
            value
        }
    }
}

pub fn sample(row: &str, threads: usize, unit: &str, value: f64) {
    println!("{}\ttokio\t{}\t{}\t{:.3}", row, threads, unit, value);
}

// A wrong result makes every number worthless: say so and end.
pub fn check<F: FnOnce() -> String>(ok: bool, text: F) {
    if !ok {
        eprintln!("wrong: {}", text());
        std::process::exit(1);
    }
}

pub fn leave_out(why: &str) -> ! {
    eprintln!("left out: {}", why);
    std::process::exit(77);
}

pub fn run<F>(threads: usize, root: F)
where
    F: Future<Output = ()> + Send + 'static,
{
    run_on(if threads == 1 { Builder::new_current_thread() } else { Builder::new_multi_thread() }, threads, root)
}

pub fn run_tree<F>(threads: usize, root: F)
where
    F: Future<Output = ()> + Send + 'static,
{
    run_on(Builder::new_multi_thread(), threads, root)
}

// Runs the future as a task, so that it is on a thread of the runtime.
fn run_on<F>(mut builder: Builder, threads: usize, root: F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let runtime = builder.worker_threads(threads).enable_time().build().expect("a runtime");
    runtime.block_on(async { tokio::spawn(root).await.expect("the root ends") });
}

pub fn nanoseconds(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64
}

// User and system time of the process so far, in seconds; the system counts them in hundredths.
pub fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").expect("/proc");
    let behind = text.rsplit(')').next().unwrap_or("");
    let fields: Vec<&str> = behind.split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap_or(0.0) + fields[12].parse::<f64>().unwrap_or(0.0)) / 100.0
}

// The most bytes that the process ever had resident.
pub fn peak() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).expect("a size") * 1024.0
}

// The next number of splitmix64 after seed, the same as bench_random gives.
pub fn random(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
