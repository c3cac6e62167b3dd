// Words counts the words of the files in a list, one name per line. It is an independent check of
// the example wordcount, which counts them in a job. A single process that does not use mpj finds
// the words with a regular expression. It is a separate program because the race detector slows
// such loops down ten times and has nothing to find in them.
//
//	words LIST
package main

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strings"
)

var word = regexp.MustCompile(`[\pL\pN_]+`)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: words LIST")
	}
	list, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	counts := make(map[string]int)
	for name := range strings.Lines(string(list)) {
		text, err := os.ReadFile(strings.TrimSuffix(name, "\n"))
		if err != nil {
			return err
		}
		for _, w := range word.FindAll(text, -1) {
			counts[string(w)]++
		}
	}
	out := bufio.NewWriter(os.Stdout)
	for w, n := range counts {
		fmt.Fprintln(out, n, w)
	}
	return out.Flush()
}
