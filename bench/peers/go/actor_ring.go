// actor_ring: 503 goroutines with a mailbox each, in a ring, pass one number on, a million times; a hop.
package main

import (
	"runtime"
	"sync/atomic"
	"time"
)

const actors, times = 503, 1000000

func pass(mailbox <-chan uint64, next chan<- uint64, hops *uint64, done chan<- bool) {
	for left := range mailbox {
		atomic.AddUint64(hops, 1)
		if left == 0 {
			done <- true
		} else {
			next <- left - 1
		}
	}
}

func measure() float64 {
	var ring [actors]chan uint64
	for i := range ring {
		ring[i] = make(chan uint64, 1)
	}
	hops, done := uint64(0), make(chan bool)
	for i := range ring {
		go pass(ring[i], ring[(i+1)%actors], &hops, done)
	}
	start := time.Now()
	ring[0] <- times
	<-done
	taken := time.Since(start)
	for i := range ring {
		close(ring[i])
	}
	check(hops == times+1, "%d hops", hops)
	return float64(taken.Nanoseconds()) / times
}

func main() {
	threads := argument(1)
	runtime.GOMAXPROCS(threads)
	measure()
	for i := 0; i < samples; i++ {
		sample("actor_ring", threads, "ns", measure())
	}
}
