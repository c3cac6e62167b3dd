// Rude is a program that misbehaves, in one way for each word on its command line. It floods its
// output, writes binary data, closes inherited descriptors, leaves children behind, and enters and
// leaves the job at the wrong time.
//
//	rude init lines=1000 barrier finalize
//	rude init only=1 exit=3 barrier finalize
package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/p2pmpi/p2pmpi/mpj"
)

var manners = map[string]func(arg string) error{
	"lines":    lines,
	"long":     long,
	"binary":   binary,
	"close":    closeStdout,
	"orphans":  orphans,
	"file":     file,
	"init":     initialize,
	"barrier":  barrier,
	"finalize": finalize,
	"exit":     exit,
	"sleep":    sleep,
	"say":      say,
	"tail":     tail,
	"bulk":     bulk,
	"small":    small,
	"only":     only,
	"stderr":   stderr,
	"stop":     stop,
}

var (
	world *mpj.World // set by init
	skip  bool       // the next word is for another rank
)

func main() {
	for _, word := range os.Args[1:] {
		name, arg, _ := strings.Cut(word, "=")
		f, ok := manners[name]
		if !ok {
			fmt.Fprintln(os.Stderr, "rude: unknown word", word)
			os.Exit(64)
		}
		if skip {
			skip = false
			continue
		}
		if err := f(arg); err != nil {
			fmt.Fprintf(os.Stderr, "rude: %s: %v\n", word, err)
			os.Exit(1)
		}
	}
}

func number(arg string) int {
	n, err := strconv.Atoi(arg)
	if err != nil {
		panic(err)
	}
	return n
}

func rank() int {
	if world == nil {
		return 0
	}
	return world.Rank()
}

// lines=K prints K lines.
func lines(arg string) error {
	w := bufio.NewWriterSize(os.Stdout, 64<<10)
	for i := range number(arg) {
		fmt.Fprintf(w, "rank %d line %d of a flood that nobody asked for\n", rank(), i)
	}
	return w.Flush()
}

// long=K prints a line of K bytes.
func long(arg string) error {
	_, err := os.Stdout.Write(append(bytes.Repeat([]byte{'a' + byte(rank())}, number(arg)-1), '\n'))
	return err
}

// binary=K prints K bytes of arbitrary values.
func binary(arg string) error {
	b := make([]byte, number(arg))
	x := uint32(rank() + 1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	_, err := os.Stdout.Write(b)
	return err
}

func closeStdout(string) error { return os.Stdout.Close() }

// orphans=K leaves K children that hold the pipes, each in its own session.
func orphans(arg string) error {
	for range number(arg) {
		c := exec.CommandContext(context.Background(), "setsid", "sleep", "1000")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			return err
		}
	}
	return nil
}

// file=K writes K MiB, the same at all replicas, into file.bin.
func file(arg string) error {
	block := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{byte(rank())}).Read(block)
	f, err := os.Create("file.bin")
	if err != nil {
		return err
	}
	for i := range number(arg) {
		block[0], block[1] = byte(i>>8), byte(i)
		if _, err := f.Write(block); err != nil {
			return err
		}
	}
	return f.Close()
}

// initialize enters the job; its word is init.
func initialize(string) (err error) {
	world, err = mpj.Init(context.Background())
	return err
}

func barrier(string) error  { return mpj.Barrier(world.Comm) }
func finalize(string) error { return world.Finalize() }

func exit(arg string) error {
	os.Exit(number(arg))
	return nil
}

func sleep(arg string) error {
	d, err := time.ParseDuration(arg)
	time.Sleep(d)
	return err
}

// say=TEXT prints a line.
func say(arg string) error {
	_, err := fmt.Printf("rank %d says %s\n", rank(), arg)
	return err
}

// tail=TEXT prints a text without a final newline.
func tail(arg string) error {
	_, err := fmt.Print(arg)
	return err
}

// stderr=TEXT prints a line to standard error.
func stderr(arg string) error {
	_, err := fmt.Fprintln(os.Stderr, arg)
	return err
}

// bulk=K sends K bytes around the ring and checks the received bytes.
func bulk(arg string) error {
	n, me := world.Size(), world.Rank()
	out, in := bytes.Repeat([]byte{byte(me)}, number(arg)), make([]byte, number(arg))
	_, err := mpj.Sendrecv(world.Comm, out, (me+1)%n, 1, in, (me+n-1)%n, 1)
	if err == nil && !bytes.Equal(in, bytes.Repeat([]byte{byte((me + n - 1) % n)}, len(in))) {
		err = fmt.Errorf("damaged message")
	}
	return err
}

// small=K sends K small messages around the ring before any is received.
func small(arg string) error {
	n, me := world.Size(), world.Rank()
	for i := range number(arg) {
		if err := mpj.Send(world.Comm, []int64{int64(i)}, (me+1)%n, 2); err != nil {
			return err
		}
	}
	in := []int64{0}
	for i := range number(arg) {
		if _, err := mpj.Recv(world.Comm, in, (me+n-1)%n, 2); err != nil {
			return err
		}
		if in[0] != int64(i) {
			return fmt.Errorf("got message %d, want %d", in[0], i)
		}
	}
	return nil
}

// only=R makes only rank R execute the next word.
func only(arg string) error {
	skip = rank() != number(arg)
	return nil
}

// stop sends this process SIGSTOP.
func stop(string) error { return syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
