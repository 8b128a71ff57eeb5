// echo1 to echo10000: a goroutine per connection sends back what it reads. One thread.
package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
)

func serve(connection net.Conn, all *sync.WaitGroup) {
	var bytes [4096]byte
	for {
		got, err := connection.Read(bytes[:])
		if err != nil {
			break
		}
		if _, err = connection.Write(bytes[:got]); err != nil {
			break
		}
	}
	connection.Close()
	all.Done()
}

func main() {
	runtime.GOMAXPROCS(1)
	connections := argument(100)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err == nil, "listen: %v", err)
	self, err := os.Executable()
	check(err == nil, "no path of this program")
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	load := exec.Command(filepath.Join(filepath.Dir(self), "../../echo_load"), strconv.Itoa(connections), port, "go")
	load.Stdout, load.Stderr = os.Stdout, os.Stderr
	check(load.Start() == nil, "the load can't be started")
	ended := make(chan bool)
	go func() {
		if err := load.Wait(); err != nil {
			os.Exit(load.ProcessState.ExitCode()) // which has said why
		}
		ended <- true
	}()
	var all sync.WaitGroup
	all.Add(connections)
	for i := 0; i < connections; i++ {
		connection, err := listener.Accept()
		check(err == nil, "accept: %v", err)
		go serve(connection, &all)
	}
	all.Wait()
	<-ended
}
