// actor_fjcreate: a million goroutines with a mailbox each are made, get one message each, and end; each.
package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const actors, eachPause = 1000000, 64

func measure() float64 {
	var all sync.WaitGroup
	var sum uint64
	work := func(mailbox <-chan uint64) {
		atomic.AddUint64(&sum, <-mailbox)
		all.Done()
	}
	all.Add(actors)
	start := time.Now()
	for i := uint64(0); i < actors; i++ {
		mailbox := make(chan uint64, 1)
		go work(mailbox)
		mailbox <- i
		if i%eachPause == 0 {
			runtime.Gosched()
		}
	}
	all.Wait()
	taken := time.Since(start)
	check(sum == actors*(actors-1)/2, "the sum is %d", sum)
	return float64(taken.Nanoseconds()) / actors
}

func main() {
	threads := argument(1)
	runtime.GOMAXPROCS(threads)
	measure()
	for i := 0; i < samples; i++ {
		sample("actor_fjcreate", threads, "ns", measure())
	}
}
