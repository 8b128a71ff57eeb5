// actor_big: each of 120 goroutines with a mailbox each sends a ping to another one, at random, and answers with a pong
// what it gets, again and again; a ping with its pong. Each has one ping under way, so no mailbox is ever full.
package main

import (
	"runtime"
	"time"
)

const actors, pings = 120, 5000

const (
	begin = iota
	ping
	pong
)

type message struct {
	kind   int
	n      uint64
	sender chan message
}

// To another than itself, at random.
func another(mailboxes []chan message, own chan message, seed *uint64) chan message {
	for {
		to := mailboxes[random(*seed)%actors]
		*seed += step
		if to != own {
			return to
		}
	}
}

func play(mailboxes []chan message, own chan message, done chan<- uint64) {
	var seed, left, sum uint64
	for m := range own {
		switch m.kind {
		case ping:
			m.sender <- message{pong, m.n, own}
			continue
		case begin:
			seed, left = m.n, pings
		case pong:
			sum += m.n
		}
		if left > 0 {
			another(mailboxes, own, &seed) <- message{ping, left, own}
			left--
		} else {
			done <- sum
		}
	}
}

func measure() float64 {
	mailboxes, done := make([]chan message, actors), make(chan uint64, actors)
	for i := range mailboxes {
		mailboxes[i] = make(chan message, actors)
	}
	for _, mailbox := range mailboxes {
		go play(mailboxes, mailbox, done)
	}
	start := time.Now()
	for i, mailbox := range mailboxes {
		mailbox <- message{begin, uint64(i), nil}
	}
	sum := uint64(0)
	for range mailboxes {
		sum += <-done
	}
	taken := time.Since(start)
	for _, mailbox := range mailboxes {
		close(mailbox)
	}
	check(sum == actors*pings*(pings+1)/2, "the sum is %d", sum)
	return float64(taken.Nanoseconds()) / (actors * pings)
}

func main() {
	threads := argument(1)
	runtime.GOMAXPROCS(threads)
	measure()
	for i := 0; i < samples; i++ {
		sample("actor_big", threads, "ns", measure())
	}
}
