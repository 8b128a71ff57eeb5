// actor_pingpong: two goroutines with a mailbox each send a number back and forth, each to the sender of what it got; a
// round trip.
package main

import (
	"runtime"
	"time"
)

const roundTrips = 1000000

type ball struct {
	n      uint64
	sender chan ball
}

// The passive one, until its mailbox is closed.
func answer(mailbox chan ball) {
	for b := range mailbox {
		b.sender <- ball{b.n, mailbox}
	}
}

func play(mailbox, other chan ball, done chan<- uint64) {
	sum := uint64(0)
	for b := range mailbox {
		sum += b.n
		if b.n == roundTrips {
			break
		}
		other <- ball{b.n + 1, mailbox}
	}
	done <- sum
}

func measure() float64 {
	passive, active, done := make(chan ball, 1), make(chan ball, 1), make(chan uint64)
	go answer(passive)
	go play(active, passive, done)
	start := time.Now()
	active <- ball{0, nil}
	sum := <-done
	taken := time.Since(start)
	close(passive)
	check(sum == roundTrips*(roundTrips+1)/2, "the sum is %d", sum)
	return float64(taken.Nanoseconds()) / roundTrips
}

func main() {
	threads := argument(1)
	runtime.GOMAXPROCS(threads)
	measure()
	for i := 0; i < samples; i++ {
		sample("actor_pingpong", threads, "ns", measure())
	}
}
