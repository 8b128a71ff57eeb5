// mailboxes: one sends a million messages, one after the other to each of N goroutines with a mailbox, and lets them
// run after every 64; a message.
package main

import (
	"runtime"
	"sync"
	"time"
)

const messages, eachPause = 1000000, 64

func measure(mailboxes []chan uint64, all *sync.WaitGroup, sum *uint64) float64 {
	all.Add(messages)
	*sum = 0
	start := time.Now()
	for i, to := 0, 0; i < messages; i++ {
		mailboxes[to] <- uint64(i)
		if to++; to == len(mailboxes) {
			to = 0
		}
		if i%eachPause == 0 {
			runtime.Gosched()
		}
	}
	all.Wait()
	taken := time.Since(start)
	check(*sum == messages*(messages-1)/2, "the sum is %d", *sum)
	return float64(taken.Nanoseconds()) / messages
}

func main() {
	runtime.GOMAXPROCS(1)
	mailboxes := make([]chan uint64, argument(1000))
	var all sync.WaitGroup
	var sum uint64
	var mutex sync.Mutex
	for i := range mailboxes {
		mailboxes[i] = make(chan uint64, eachPause)
		go func(mailbox <-chan uint64) {
			own := uint64(0)
			for n := range mailbox {
				own += n
				mutex.Lock()
				sum += n
				mutex.Unlock()
				all.Done()
			}
		}(mailboxes[i])
	}
	measure(mailboxes, &all, &sum)
	for i := 0; i < samples; i++ {
		sample("mailboxes", 1, "ns", measure(mailboxes, &all, &sum))
	}
}
