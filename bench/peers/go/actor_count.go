// actor_count: one goroutine sends five million messages to another, which counts them, into a mailbox with room for
// 1000; a message.
package main

import (
	"runtime"
	"time"
)

const messages, most = 5000000, 1000

func count(mailbox <-chan uint64, done chan<- uint64) {
	sum := uint64(0)
	for by := range mailbox {
		sum += by
		if sum == messages {
			done <- sum
		}
	}
}

func produce(mailbox <-chan chan<- uint64) {
	for counter := range mailbox {
		for i := 0; i < messages; i++ {
			counter <- 1
		}
	}
}

func measure() float64 {
	counter, producer, done := make(chan uint64, most), make(chan chan<- uint64, 1), make(chan uint64)
	go count(counter, done)
	go produce(producer)
	start := time.Now()
	producer <- counter
	sum := <-done
	taken := time.Since(start)
	close(producer)
	close(counter)
	check(sum == messages, "the sum is %d", sum)
	return float64(taken.Nanoseconds()) / messages
}

func main() {
	threads := argument(1)
	runtime.GOMAXPROCS(threads)
	measure()
	for i := 0; i < samples; i++ {
		sample("actor_count", threads, "ns", measure())
	}
}
