// skynet: a tree of goroutines, ten children each, a million leaves; every one sends the sum of its leaves' numbers.
package main

import (
	"runtime"
	"time"
)

const (
	fanOut = 10
	leaves = 1000000
)

func sky(result chan<- int, first, leaves int) {
	if leaves == 1 {
		result <- first
		return
	}
	children := make(chan int, fanOut)
	each := leaves / fanOut
	for i := 0; i < fanOut; i++ {
		go sky(children, first+i*each, each)
	}
	sum := 0
	for i := 0; i < fanOut; i++ {
		sum += <-children
	}
	result <- sum
}

func measure() float64 {
	result := make(chan int, 1)
	start := time.Now()
	go sky(result, 0, leaves)
	sum := <-result
	taken := time.Since(start)
	check(sum == 499999500000, "sum %d", sum)
	return float64(taken.Nanoseconds()) / 1e6
}

func main() {
	threads := argument(1)
	runtime.GOMAXPROCS(threads)
	measure()
	sample("skynet", threads, "ms", measure())
	sample("mem_skynet", threads, "bytes", peak())
}
