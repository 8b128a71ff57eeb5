// spawn_join: start a goroutine that sends its argument, receive it, again and again.
package main

import (
	"runtime"
	"time"
)

const rounds = 300000

func measure() float64 {
	result := make(chan int, 1)
	sum := 0
	start := time.Now()
	for i := 0; i < rounds; i++ {
		go func(value int) { result <- value }(i)
		sum += <-result
	}
	taken := time.Since(start)
	check(sum == rounds*(rounds-1)/2, "sum %d", sum)
	return float64(taken.Nanoseconds()) / rounds
}

func main() {
	threads := argument(1)
	runtime.GOMAXPROCS(threads)
	measure()
	for i := 0; i < samples; i++ {
		sample("spawn_join", threads, "ns", measure())
	}
}
