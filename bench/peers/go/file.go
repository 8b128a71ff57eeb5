// file_read4k: 64 goroutines read blocks of a file, which the system has in memory, at random. file_direct4k: the same
// past that memory (O_DIRECT), from the disk. Reads per second.
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const block, blocks, readers = 4096, 16384, 64

func makeFile(flags int) *os.File {
	file, err := os.CreateTemp(".", "bench-file-")
	check(err == nil, "no file here")
	buffer := make([]byte, block)
	for i := 0; i < blocks; i++ {
		binary.LittleEndian.PutUint64(buffer, uint64(i))
		_, err = file.Write(buffer)
		check(err == nil, "no room for the file")
	}
	check(file.Sync() == nil, "the disk has not got the file")
	used, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), os.O_RDONLY|flags, 0)
	check(err == nil, "the file system has no O_DIRECT: %v", err)
	os.Remove(file.Name())
	file.Close()
	return used
}

func aligned() []byte {
	memory := make([]byte, 2*block)
	at := int(uintptr(unsafe.Pointer(&memory[0])) % block)
	return memory[block-at : 2*block-at]
}

func measure(file *os.File, reads int64, buffers [][]byte) float64 {
	var next atomic.Int64
	var group sync.WaitGroup
	start := time.Now()
	for i := 0; i < readers; i++ {
		group.Add(1)
		go func(buffer []byte) {
			defer group.Done()
			for n := next.Add(1) - 1; n < reads; n = next.Add(1) - 1 {
				number := uint64(n) * 0x9E3779B97F4A7C15 >> 40 % blocks
				got, err := file.ReadAt(buffer, int64(number)*block)
				check(err == nil && got == block, "a read has failed")
				check(binary.LittleEndian.Uint64(buffer) == number, "another block was read")
			}
		}(buffers[i])
	}
	group.Wait()
	return float64(reads) / time.Since(start).Seconds()
}

func main() {
	row, flags, reads := "file_read4k", 0, int64(640000)
	if len(os.Args) > 1 && os.Args[1] == "direct" {
		row, flags, reads = "file_direct4k", syscall.O_DIRECT, 6400
	}
	runtime.GOMAXPROCS(1)
	file := makeFile(flags)
	buffers := make([][]byte, readers)
	for i := range buffers {
		buffers[i] = aligned()
	}
	measure(file, reads, buffers)
	for i := 0; i < samples; i++ {
		sample(row, 1, "reads/s", measure(file, reads, buffers))
	}
}
