// actor_fjthrput: ten thousand messages to each of sixty goroutines, which count them; their mailboxes have room for
// 256; a message.
package main

import (
	"runtime"
	"time"
)

const actors, each, most = 60, 10000, 256

func count(mailbox <-chan uint64, done chan<- uint64) {
	sum, count := uint64(0), 0
	for n := range mailbox {
		sum += n
		if count++; count == each {
			done <- sum
		}
	}
}

func measure() float64 {
	var mailboxes [actors]chan uint64
	done := make(chan uint64, actors)
	for i := range mailboxes {
		mailboxes[i] = make(chan uint64, most)
		go count(mailboxes[i], done)
	}
	start := time.Now()
	for n := uint64(0); n < each; n++ {
		for _, mailbox := range mailboxes {
			mailbox <- n
		}
	}
	sum := uint64(0)
	for range mailboxes {
		sum += <-done
	}
	taken := time.Since(start)
	for _, mailbox := range mailboxes {
		close(mailbox)
	}
	check(sum == actors*each*(each-1)/2, "the sum is %d", sum)
	return float64(taken.Nanoseconds()) / (actors * each)
}

func main() {
	threads := argument(1)
	runtime.GOMAXPROCS(threads)
	measure()
	for i := 0; i < samples; i++ {
		sample("actor_fjthrput", threads, "ns", measure())
	}
}
