// fib30: the 30th Fibonacci number with a goroutine for fib(n - 1) and a call for fib(n - 2).
package main

import (
	"runtime"
	"time"
)

func fib(n int) int {
	if n < 2 {
		return n
	}
	child := make(chan int, 1)
	go func() { child <- fib(n - 1) }()
	called := fib(n - 2)
	return <-child + called
}

func measure() float64 {
	start := time.Now()
	value := fib(30)
	taken := time.Since(start)
	check(value == 832040, "fib(30) = %d", value)
	return float64(taken.Nanoseconds()) / 1e6
}

func main() {
	threads := argument(1)
	runtime.GOMAXPROCS(threads)
	measure()
	sample("fib30", threads, "ms", measure())
}
