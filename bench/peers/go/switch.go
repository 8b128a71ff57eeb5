// switch, yield1000: N goroutines on one thread that do nothing but yield.
package main

import (
	"runtime"
	"sync"
	"time"
)

const switches = 1000000

func measure(goroutines, turns int) float64 {
	total := 0
	var all sync.WaitGroup
	all.Add(goroutines)
	start := time.Now()
	for i := 0; i < goroutines; i++ {
		go func() {
			for turn := 0; turn < turns; turn++ {
				runtime.Gosched()
			}
			total += turns
			all.Done()
		}()
	}
	all.Wait()
	taken := time.Since(start)
	check(total == goroutines*turns, "%d turns", total)
	return float64(taken.Nanoseconds()) / float64(total)
}

func main() {
	runtime.GOMAXPROCS(1)
	goroutines := argument(2)
	row := "yield1000"
	if goroutines == 2 {
		row = "switch"
	}
	measure(goroutines, switches/goroutines)
	for i := 0; i < samples; i++ {
		sample(row, 1, "ns", measure(goroutines, switches/goroutines))
	}
}
