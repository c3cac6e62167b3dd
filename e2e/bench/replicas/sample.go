package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// A sample is the result of one measurement.
type sample struct {
	Round int `json:"round"`

	// For the cost: the test and the way to run it, and the seconds that it took.
	Test    string  `json:"test,omitempty"`
	Bytes   int     `json:"bytes,omitempty"`
	N       int     `json:"n,omitempty"`
	Way     string  `json:"way,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`

	// For a kill: its target, and the seconds from the kill to the view with the new master and to
	// the new master's first message.
	Killed  string  `json:"killed,omitempty"`
	Master  float64 `json:"master,omitempty"`
	Message float64 `json:"message,omitempty"`
}

// rounds returns the number of rounds that have samples.
func rounds(all []sample) int {
	n := 0
	for _, s := range all {
		n = max(n, s.Round+1)
	}
	return n
}

// read returns the samples in a file, or none if there is no file.
func read(file string) (all []sample, err error) {
	f, err := os.Open(file)
	if file == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var s sample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		all = append(all, s)
	}
	return all, lines.Err()
}

// write appends samples to a file, if file is not empty.
func write(file string, samples []sample) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(f)
	for _, s := range samples {
		if err := lines.Encode(s); err != nil {
			f.Close()
			return err
		}
	}
	return f.Close()
}
