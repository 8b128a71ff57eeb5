// spawn_batch: start 10 000 goroutines, then wait for them all. Per goroutine.
package main

import (
	"runtime"
	"sync"
	"time"
)

const (
	goroutines = 10000
	batches    = 30
)

func measure() float64 {
	results := make([]int, goroutines)
	sum := 0
	start := time.Now()
	for batch := 0; batch < batches; batch++ {
		var all sync.WaitGroup
		all.Add(goroutines)
		for i := 0; i < goroutines; i++ {
			go func(value int) {
				results[value] = value
				all.Done()
			}(i)
		}
		all.Wait()
		for _, value := range results {
			sum += value
		}
	}
	taken := time.Since(start)
	check(sum == batches*goroutines*(goroutines-1)/2, "sum %d", sum)
	return float64(taken.Nanoseconds()) / batches / goroutines
}

func main() {
	threads := argument(1)
	runtime.GOMAXPROCS(threads)
	measure()
	for i := 0; i < samples; i++ {
		sample("spawn_batch", threads, "ns", measure())
	}
}
