// mutex, mutex_shared: one goroutine locks and unlocks a mutex that nobody else wants, on one thread and on two; mutex2:
// two on two threads do it at the same time. Per lock and unlock.
package main

import (
	"os"
	"runtime"
	"sync"
	"time"
)

const times = 3000000

func measure(goroutines int) float64 {
	var mutex sync.Mutex
	var all sync.WaitGroup
	count := 0
	start := time.Now()
	for i := 0; i < goroutines; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for n := 0; n < times; n++ {
				mutex.Lock()
				count++
				mutex.Unlock()
			}
		}()
	}
	all.Wait()
	taken := time.Since(start)
	check(count == goroutines*times, "it was locked %d times", count)
	return float64(taken.Nanoseconds()) / float64(goroutines*times)
}

func main() {
	row, threads, goroutines := "mutex", 1, 1
	if len(os.Args) > 1 {
		row = os.Args[1]
	}
	if row != "mutex" {
		threads = 2
	}
	if row == "mutex2" {
		goroutines = 2
	}
	runtime.GOMAXPROCS(threads)
	measure(goroutines)
	for i := 0; i < samples; i++ {
		sample(row, threads, "ns", measure(goroutines))
	}
}
