// chan_rtt: two goroutines send one value back and forth over two unbuffered channels; a round trip.
package main

import (
	"os"
	"runtime"
	"time"
)

const rounds = 1000000

func measure() float64 {
	there, back := make(chan uint64), make(chan uint64)
	go func() {
		for n := range there {
			back <- n
		}
	}()
	sum := uint64(0)
	start := time.Now()
	for i := uint64(0); i < rounds; i++ {
		there <- i
		sum += <-back
	}
	taken := time.Since(start)
	close(there)
	check(sum == rounds*(rounds-1)/2, "the sum of the answers is %d", sum)
	return float64(taken.Nanoseconds()) / rounds
}

func main() {
	if len(os.Args) > 2 {
		leaveOut("Go has no such row")
	}
	threads := argument(1)
	runtime.GOMAXPROCS(threads)
	measure()
	for i := 0; i < samples; i++ {
		sample("chan_rtt", threads, "ns", measure())
	}
}
