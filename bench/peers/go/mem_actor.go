// mem_actor: what a goroutine with a mailbox takes that has nothing to do, with eight bytes of state; the bytes that are
// resident for a million of them, each.
package main

import (
	"runtime"
	"sync"
	"sync/atomic"
)

const actors = 1000000

var all sync.WaitGroup
var sum uint64

func keep(mailbox <-chan uint64) {
	own := uint64(0)
	for n := range mailbox {
		own += n
		atomic.AddUint64(&sum, own)
		all.Done()
	}
}

func tellAll(mailboxes []chan uint64) {
	all.Add(actors)
	for i, mailbox := range mailboxes {
		mailbox <- uint64(i)
		if i%64 == 0 {
			runtime.Gosched()
		}
	}
	all.Wait()
}

func main() {
	threads := argument(1)
	runtime.GOMAXPROCS(threads)
	mailboxes := make([]chan uint64, actors)
	none := make(chan uint64)
	for i := range mailboxes {
		mailboxes[i] = none // the pages are there
	}
	before := resident()
	for i := range mailboxes {
		mailboxes[i] = make(chan uint64, 1)
		go keep(mailboxes[i])
	}
	tellAll(mailboxes)
	after := resident()
	sample("mem_actor", threads, "bytes", (after-before)/actors)
	tellAll(mailboxes)
	check(sum == 3*(actors*(actors-1)/2), "the sum is %d", sum)
}
