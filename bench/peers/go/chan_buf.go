// chan_buf: one goroutine sends, one receives, over a channel with room for 128; per item.
package main

import (
	"runtime"
	"time"
)

const items, room = 3000000, 128

func measure() float64 {
	channel, total := make(chan uint64, room), make(chan uint64)
	go func() {
		sum := uint64(0)
		for n := range channel {
			sum += n
		}
		total <- sum
	}()
	start := time.Now()
	for i := uint64(0); i < items; i++ {
		channel <- i
	}
	close(channel)
	sum := <-total
	taken := time.Since(start)
	check(sum == items*(items-1)/2, "the sum of the items is %d", sum)
	return float64(taken.Nanoseconds()) / items
}

func main() {
	threads := argument(1)
	runtime.GOMAXPROCS(threads)
	measure()
	for i := 0; i < samples; i++ {
		sample("chan_buf", threads, "ns", measure())
	}
}
