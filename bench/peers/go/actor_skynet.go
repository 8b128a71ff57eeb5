// actor_skynet: a tree of goroutines with a mailbox each, ten children and a million leaves, whose numbers are added up
// on the way back.
package main

import (
	"runtime"
	"time"
)

const (
	fanOut = 10
	leaves = 1000000
)

// The beginning of a node; or, with no leaves, the result of a child.
type message struct {
	number uint64
	leaves uint64
}

func node(mailbox <-chan message, parent chan<- message) {
	begin := <-mailbox
	if begin.leaves == 1 {
		parent <- message{begin.number, 0}
		return
	}
	own := make(chan message, fanOut)
	for i := uint64(0); i < fanOut; i++ {
		child := make(chan message, 1)
		go node(child, own)
		child <- message{begin.number + i*begin.leaves/fanOut, begin.leaves / fanOut}
	}
	sum := uint64(0)
	for i := 0; i < fanOut; i++ {
		sum += (<-own).number
	}
	parent <- message{sum, 0}
}

func measure() float64 {
	top, result := make(chan message, 1), make(chan message, 1)
	start := time.Now()
	go node(top, result)
	top <- message{0, leaves}
	sum := (<-result).number
	taken := time.Since(start)
	check(sum == leaves*(leaves-1)/2, "the sum is %d", sum)
	return float64(taken.Nanoseconds()) / 1e6
}

func main() {
	threads := argument(1)
	runtime.GOMAXPROCS(threads)
	measure()
	sample("actor_skynet", threads, "ms", measure())
}
