// timers: N goroutines, each of which sleeps four times up to a quarter of a second, at random: the processor time of a
// sleep, as N timers are pending at a time.
package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const sleeps = 4

func main() {
	runtime.GOMAXPROCS(1)
	goroutines := argument(1000)
	var woken int64
	var all sync.WaitGroup
	all.Add(goroutines)
	used := cpu()
	for i := 0; i < goroutines; i++ {
		go func(seed uint64) {
			for n := 0; n < sleeps; n++ {
				time.Sleep(time.Duration(random(seed) % uint64(250*time.Millisecond)))
				seed += step
				atomic.AddInt64(&woken, 1)
			}
			all.Done()
		}(uint64(i))
	}
	all.Wait()
	used = cpu() - used
	check(woken == int64(goroutines)*sleeps, "%d sleeps", woken)
	sample("timers", 1, "ns", float64(used.Nanoseconds())/float64(woken))
}
