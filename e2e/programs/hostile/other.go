//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "hostile: knows only how to attack Linux")
	os.Exit(64)
}
