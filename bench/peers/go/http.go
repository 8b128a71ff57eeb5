// http: Go's own server, on one thread. Without arguments it has itself measured by the program http of the folder
// above.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

func hello(answer http.ResponseWriter, request *http.Request) {
	answer.Header().Set("Content-Type", "text/plain")
	fmt.Fprintf(answer, "Hello, world!\n")
}

func main() {
	if len(os.Args) == 1 {
		self, err := os.Executable()
		check(err == nil, "no path of this program")
		program := filepath.Join(filepath.Dir(self), "../../http")
		err = syscall.Exec(program, []string{program, "go", self, "serve"}, os.Environ())
		check(false, "%s: %v", program, err)
	}
	runtime.GOMAXPROCS(1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err == nil, "listen: %v", err)
	fmt.Printf("listening on %s\n", listener.Addr())
	http.HandleFunc("/hello", hello)
	check(http.Serve(listener, nil) == nil, "the server ended")
}
