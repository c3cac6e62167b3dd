package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A state is the data that a rank needs to resume.
type state struct {
	step, sum int64
	ballast   []byte // each byte is its index, plus one for each step that has changed it
}

func newState(size int) *state {
	s := &state{ballast: make([]byte, size)}
	for i := range s.ballast {
		s.ballast[i] = byte(i)
	}
	return s
}

// add completes a step.
func (s *state) add(x int64) {
	s.sum += x
	if n := int64(len(s.ballast)); n > 0 {
		s.ballast[s.step%n]++
	}
}

// check returns an error unless the ballast is the result of the steps.
func (s *state) check() error {
	n := int64(len(s.ballast))
	for i, b := range s.ballast {
		steps := s.step / n
		if int64(i) < s.step%n {
			steps++
		}
		if want := byte(int64(i) + steps); b != want {
			return fmt.Errorf("byte %d of the state is %d after step %d, want %d", i, b, s.step, want)
		}
	}
	return nil
}

func (s *state) save(to io.Writer) error {
	b := binary.LittleEndian.AppendUint64(nil, uint64(s.step))
	_, err := to.Write(binary.LittleEndian.AppendUint64(b, uint64(s.sum)))
	if err == nil {
		_, err = to.Write(s.ballast)
	}
	return err
}

func (s *state) restore(from io.Reader) error {
	b := make([]byte, 16)
	_, err := io.ReadFull(from, b)
	if err == nil {
		_, err = io.ReadFull(from, s.ballast)
	}
	s.step, s.sum = int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))
	if n, _ := from.Read(b); err == nil && n > 0 {
		return errors.New("the checkpoint is longer than the state")
	}
	return err
}
