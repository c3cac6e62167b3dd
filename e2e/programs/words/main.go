// Words counts the words of the files that a list names, each on its line: a
// second opinion on what the example wordcount counts in a job, found with a
// regular expression by a single process that knows nothing of mpj. It is a
// program of its own because the race detector, which slows such loops down ten
// times, has nothing to find in it.
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
