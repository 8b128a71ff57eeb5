// sleep1m, sleep1m_cpu: a million goroutines sleep 0 to 2 s at random, the same times as in sleep1m.c.
package main

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const goroutines = 1000000

func main() {
	if len(os.Args) > 1 {
		leaveOut("goroutines share no stacks")
	}
	runtime.GOMAXPROCS(1)
	var woken int64
	var all sync.WaitGroup
	all.Add(goroutines)
	used := cpu()
	start := time.Now()
	for i := 0; i < goroutines; i++ {
		go func(number uint64) {
			time.Sleep(time.Duration(random(number) % uint64(2*time.Second)))
			atomic.AddInt64(&woken, 1)
			all.Done()
		}(uint64(i))
	}
	all.Wait()
	taken := time.Since(start)
	used = cpu() - used
	check(woken == goroutines, "%d goroutines woke up", woken)
	sample("sleep1m", 1, "s", taken.Seconds())
	sample("sleep1m_cpu", 1, "s", used.Seconds())
}
