// udp_echo: a goroutine sends back the datagrams that it receives. One thread. The standard library has no call for
// several datagrams.
package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
)

func main() {
	runtime.GOMAXPROCS(1)
	connection, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check(err == nil, "no socket: %v", err)
	self, err := os.Executable()
	check(err == nil, "no path of this program")
	port := strconv.Itoa(connection.LocalAddr().(*net.UDPAddr).Port)
	load := exec.Command(filepath.Join(filepath.Dir(self), "../../udp_load"), "64", port, "go")
	load.Stdout, load.Stderr = os.Stdout, os.Stderr
	check(load.Start() == nil, "the load can't be started")
	var bytes [4096]byte
	for {
		got, from, err := connection.ReadFromUDPAddrPort(bytes[:])
		check(err == nil, "receive: %v", err)
		if got == 0 {
			break
		}
		_, err = connection.WriteToUDPAddrPort(bytes[:got], from)
		check(err == nil, "send: %v", err)
	}
	if load.Wait() != nil {
		os.Exit(1) // it has said why
	}
}
