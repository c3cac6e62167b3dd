// Captive is a module that tries to reach more than its scratch directory. It prints each success,
// and exits with status 1 if it has reached anything.
//
//	captive FILE...    the files of the owner that it tries to read
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	reached := 0
	try := func(what string, err error) {
		if err == nil {
			fmt.Println("reached:", what)
			reached++
		}
	}
	for _, name := range os.Args[1:] {
		for _, way := range []string{name, strings.Repeat("../", 12) + name, "/.." + name, "//" + name} {
			_, err := os.ReadFile(way)
			try("read "+way, err)
		}
		try("link to "+name, os.Symlink(name, "way"))
		try("hard link to "+name, os.Link(name, "way"))
		try("rename "+name, os.Rename(name, "way"))
		try("remove "+name, os.Remove(name))
		try("list "+filepath.Dir(name), list(filepath.Dir(name)))
	}
	_, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", "127.0.0.1:22")
	try("a connection", err)
	_, err = os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	try("a process", err)
	// The module's directory is its root, so .. leads to that directory itself.
	err = os.WriteFile("../inside", []byte("x"), 0o600)
	if _, missing := os.Stat("inside"); err != nil || missing != nil {
		fmt.Println("cannot write to its own folder:", err, missing)
		reached++
	}
	os.Exit(min(reached, 1))
}

func list(folder string) error {
	entries, err := os.ReadDir(folder)
	if err == nil && len(entries) == 0 {
		err = os.ErrNotExist
	}
	return err
}
