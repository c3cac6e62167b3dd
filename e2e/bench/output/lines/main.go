// Lines prints lines of 65 to 87 bytes as fast as its output accepts them.
//
//	lines [MB]
package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

const block = 64 << 10 // bytes of one write

func main() {
	megabytes := 1
	if len(os.Args) > 1 {
		var err error
		if megabytes, err = strconv.Atoi(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, "lines:", err)
			os.Exit(64)
		}
	}
	var text bytes.Buffer
	for i := 0; text.Len() < block; i++ {
		fmt.Fprintf(&text, "%08d %s\n", i, strings.Repeat("x", 55+i%23))
	}
	for size := 0; size < megabytes*1e6; size += text.Len() {
		if _, err := os.Stdout.Write(text.Bytes()); err != nil {
			os.Exit(1)
		}
	}
}
