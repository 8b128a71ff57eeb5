// select4: one goroutine receives from four unbuffered channels by one select; a producer sends to each. Per item.
// select4_buf: the channels have room for 128.
package main

import (
	"runtime"
	"time"
)

const items, room = 500000, 128

func measure(room int) float64 {
	var channels [4]chan uint64
	var last [4]uint64
	for i := range channels {
		channels[i] = make(chan uint64, room)
		go func(channel chan uint64) {
			for n := uint64(1); n <= items; n++ {
				channel <- n
			}
		}(channels[i])
	}
	take := func(i int, n uint64) {
		last[i]++
		check(n == last[i], "item %d of channel %d", n, i)
	}
	start := time.Now()
	for n := 0; n < 4*items; n++ {
		select {
		case v := <-channels[0]:
			take(0, v)
		case v := <-channels[1]:
			take(1, v)
		case v := <-channels[2]:
			take(2, v)
		case v := <-channels[3]:
			take(3, v)
		}
	}
	return float64(time.Since(start).Nanoseconds()) / (4 * items)
}

func main() {
	threads := argument(1)
	runtime.GOMAXPROCS(threads)
	measure(0)
	measure(room)
	for i := 0; i < samples; i++ {
		sample("select4", threads, "ns", measure(0))
		sample("select4_buf", threads, "ns", measure(room))
	}
}
