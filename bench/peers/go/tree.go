// tree_width: N goroutines that end at once, and one that waits for them. tree_depth: a chain of N goroutines, each of
// which starts the next one, and waits for it. Per goroutine.
package main

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

const goroutines = 200000

func wide(width int) int {
	var all sync.WaitGroup
	all.Add(width)
	for i := 0; i < width; i++ {
		go all.Done()
	}
	all.Wait()
	return width
}

func chain(left int, result chan<- int) {
	if left == 0 {
		result <- 0
		return
	}
	below := make(chan int, 1)
	go chain(left-1, below)
	result <- <-below + 1
}

func deep(depth int) int {
	result := make(chan int, 1)
	chain(depth, result)
	return <-result
}

func measure(tree func(int) int, size int) float64 {
	times := goroutines / size
	if times == 0 {
		times = 1
	}
	count := 0
	start := time.Now()
	for i := 0; i < times; i++ {
		count += tree(size)
	}
	taken := time.Since(start)
	check(count == times*size, "%d goroutines", count)
	return float64(taken.Nanoseconds()) / float64(count)
}

func main() {
	runtime.GOMAXPROCS(1)
	check(len(os.Args) == 3, "the arguments are width or depth, and a number")
	size, err := strconv.Atoi(os.Args[2])
	check(err == nil && size > 0, "%s is no size", os.Args[2])
	tree := wide
	if os.Args[1] == "depth" {
		tree = deep
	}
	measure(tree, size)
	for i := 0; i < samples; i++ {
		sample("tree_"+os.Args[1], 1, "ns", measure(tree, size))
	}
}
