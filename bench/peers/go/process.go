// process, process_1g, process_10g: starts /bin/true and waits for its end, again and again, in a program that has so
// many MiB resident. Starts per second.
package main

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

const starts = 500

func measure() float64 {
	start := time.Now()
	for i := 0; i < starts; i++ {
		err := exec.Command("/bin/true").Run()
		check(err == nil, "it was not started: %v", err)
	}
	return starts / time.Since(start).Seconds()
}

func main() {
	mib, row := 10, "process"
	if len(os.Args) > 1 {
		mib, _ = strconv.Atoi(os.Args[1])
	}
	if mib >= 10240 {
		row = "process_10g"
	} else if mib >= 1024 {
		row = "process_1g"
	}
	memory, err := syscall.Mmap(-1, 0, mib<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	check(err == nil, "no memory")
	check(syscall.Madvise(memory, 15) == nil, "huge pages can't be turned off")
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	runtime.GOMAXPROCS(1)
	measure()
	for i := 0; i < samples; i++ {
		sample(row, 1, "starts/s", measure())
	}
}
