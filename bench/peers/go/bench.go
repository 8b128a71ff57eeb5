// What the Go programs share: samples, checks and memory, as in bench.h. The first argument of a program is what its
// twin in C takes.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// How many samples a short measurement takes after its warm-up.
const samples = 5

func sample(row string, threads int, unit string, value float64) {
	fmt.Printf("%s\tgo\t%d\t%s\t%.3f\n", row, threads, unit, value)
}

// A wrong result makes every number worthless: say so and end.
func check(ok bool, format string, args ...any) {
	if !ok {
		fmt.Fprintf(os.Stderr, "wrong: "+format+"\n", args...)
		os.Exit(1)
	}
}

// What the row needs is not there: say so and end, by an exit status that bench/run knows.
func leaveOut(why string) {
	fmt.Fprintf(os.Stderr, "left out: %s\n", why)
	os.Exit(77)
}

func argument(otherwise int) int {
	if len(os.Args) < 2 {
		return otherwise
	}
	value, err := strconv.Atoi(os.Args[1])
	check(err == nil && value > 0, "argument %s is not a positive number", os.Args[1])
	return value
}

// User and system time of the process so far.
func cpu() time.Duration {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage) == nil, "no resource usage")
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// A field of /proc/self/status that is a size, in bytes.
func status(field string) float64 {
	file, err := os.Open("/proc/self/status")
	check(err == nil, "no /proc")
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); fields[0] == field {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			check(err == nil, "no "+field)
			return float64(kib * 1024)
		}
	}
	check(false, "no "+field)
	return 0
}

// The most bytes that the process ever had resident.
func peak() float64 {
	return status("VmHWM:")
}

// The bytes that the process has resident now.
func resident() float64 {
	return status("VmRSS:")
}

const step = 0x9e3779b97f4a7c15

// The next number of splitmix64 after seed, the same as bench_random gives.
func random(seed uint64) uint64 {
	z := seed + step
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}
