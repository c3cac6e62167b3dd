package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/p2pmpi/p2pmpi/internal/proclink"
	"github.com/p2pmpi/p2pmpi/internal/version"
	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj"
	"github.com/p2pmpi/p2pmpi/mpj/channel"
)

// TestMain makes this binary its own supervisor and its own program.
func TestMain(m *testing.M) {
	// syscall.Exit, since os.Exit takes a second under the race detector.
	if status, ours := Supervise(); ours {
		syscall.Exit(status)
	}
	if os.Getenv(proclink.FDVariable) != "" {
		syscall.Exit(program(os.Args[1:]))
	}
	goleak.VerifyTestMain(m,
		// goroutines of go-libp2p that live as long as the process
		goleak.IgnoreAnyFunction("github.com/ipfs/go-log/v2/writer.(*MirrorWriter).logRoutine"),
		goleak.IgnoreAnyFunction("go.opencensus.io/stats/view.(*worker).start"),
	)
}

// programs are roles that only some systems support.
var programs = make(map[string]func(args []string) int)

// program runs as the program of the tests' jobs. The first argument selects its role.
func program(args []string) int {
	role, args := args[0], args[1:]
	if own := programs[role]; own != nil {
		return own(args)
	}
	switch role {
	case "print": // text, count, exit status
		times, _ := strconv.Atoi(args[1])
		out := bufio.NewWriter(os.Stdout)
		for i := range times {
			fmt.Fprintf(out, "%s %d\n", args[0], i)
		}
		out.Flush()
		fmt.Fprintln(os.Stderr, "complaint")
		status, _ := strconv.Atoi(args[2])
		return status
	case "files":
		b, err := os.ReadFile("in/data")
		if err != nil {
			fmt.Println(err)
			return 1
		}
		os.WriteFile("result.out", []byte("made of "+string(b)), 0o600)
		os.WriteFile("other", b, 0o600)
		return 0
	case "babble":
		f := os.NewFile(3, "line")
		f.WriteString("this is not a message, and it is long enough to be seen as one")
		time.Sleep(time.Hour) // until it is killed
	case "chatter":
		return chatter()
	case "ring":
		return ring()
	case "count":
		return count()
	case "hold":
		return hold()
	case "join":
		return newcomer()
	case "add":
		return addition()
	case "bear":
		l := enter(version.Protocol)
		l.say(proclink.Init, withKey)
		fmt.Println("bears", l.await(proclink.Start).ToleratedHang)
		l.say(proclink.Finalized, nil)
		l.await(proclink.Bye)
		return 0
	case "flush":
		return flusher()
	case "flush often":
		return flooder()
	case "abort":
		l := enter(version.Protocol)
		l.say(proclink.Abort, func(m *proclink.Message) { m.Code, m.Text = 7, "enough" })
		return 7
	case "hang":
		l := enter(version.Protocol)
		l.say(proclink.Init, withKey)
		time.Sleep(time.Hour) // until it is killed
	case "wait":
		l := enter(version.Protocol)
		l.say(proclink.Init, withKey)
		l.await(proclink.Bye) // never arrives
	case "stop":
		syscall.Kill(os.Getppid(), syscall.SIGSTOP)
		return 0
	case "stopped":
		stopSelf()
	case "leave":
		l := enter(version.Protocol)
		l.say(proclink.Init, withKey)
		l.say(proclink.Finalized, nil)
		l.await(proclink.Bye)
		stopSelf()
	case "upload":
		return upload()
	case "exceed":
		return exceed(args[0])
	case "exceed together": // when all processes run
		l := enter(version.Protocol)
		l.say(proclink.Init, withKey)
		l.await(proclink.Start)
		return exceed(args[0])
	case "shell":
		fmt.Println(syscall.Exec("/bin/sh", []string{"sh", "-c", args[0]}, os.Environ()))
		return 1
	case "old":
		enter(version.Protocol - 1)
	}
	return 100
}

// chatter sends unsolicited messages as fast as it can for a second, and prints how many those were.
func chatter() int {
	l := enter(version.Protocol)
	l.say(proclink.Init, withKey)
	begun, said := time.Now(), 0
	for ; time.Since(begun) < time.Second; said++ {
		l.say(proclink.Pong, nil)
	}
	fmt.Println(said, time.Since(begun).Seconds())
	l.say(proclink.Finalized, nil)
	l.await(proclink.Bye)
	return 0
}

// stopSelf stops this process. The calling thread may run a little further.
func stopSelf() {
	syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	time.Sleep(time.Hour) // until it is killed
}

// A processLine is a process's end of its control socket.
type processLine struct {
	*proclink.Conn
	setup   proclink.Message
	self    view.Process
	view    view.View
	channel *os.File
	accept  *os.File
}

// enter sends Hello and receives Setup.
func enter(protocol int) *processLine {
	conn, err := proclink.FromFile(os.NewFile(3, "line"))
	if err != nil {
		panic(err)
	}
	l := &processLine{Conn: conn}
	l.say(proclink.Hello, func(m *proclink.Message) { m.Version = protocol })
	m := l.await(proclink.Setup)
	l.setup, l.self, l.view = m, *m.Process, *m.View
	return l
}

// withKey adds a public key to a process's Init.
func withKey(m *proclink.Message) {
	identity, err := channel.NewIdentity()
	if err != nil {
		panic(err)
	}
	m.Key = identity.Key()
}

func (l *processLine) say(t proclink.Type, fill func(*proclink.Message)) {
	m := proclink.Message{Type: t}
	if fill != nil {
		fill(&m)
	}
	if err := l.Send(m, nil); err != nil {
		panic(err)
	}
}

// await returns the next message of the given type.
func (l *processLine) await(t proclink.Type) proclink.Message { return l.awaitAll(t)[t] }

// awaitAll returns the next message of each type, in any order, and keeps the descriptors that arrive.
func (l *processLine) awaitAll(ts ...proclink.Type) map[proclink.Type]proclink.Message {
	got := make(map[proclink.Type]proclink.Message)
	for len(got) < len(ts) {
		m, f, err := l.Receive()
		if err != nil {
			panic(err)
		}
		switch m.Type {
		case proclink.Channel:
			l.channel = f
		case proclink.Accept:
			l.accept = f
		case proclink.Ping:
			l.say(proclink.Pong, func(p *proclink.Message) { p.Count = m.Count })
		}
		if slices.Contains(ts, m.Type) {
			got[m.Type] = m
		}
	}
	return got
}

// ring sends a text to the next rank, and prints the one from the previous rank.
func ring() int {
	w, err := mpj.Init(context.Background())
	if err != nil {
		panic(err)
	}
	n, rank := w.Size(), w.Rank()
	word := make([]byte, len("hello of 0"))
	sent := fmt.Appendf(nil, "hello of %d", rank)
	_, err = mpj.Sendrecv(w.Comm, sent, (rank+1)%n, 0, word, (rank+n-1)%n, 0)
	fmt.Printf("%d got %q %v\n", rank, word, err)
	if err := w.Finalize(); err != nil {
		panic(err)
	}
	return 0
}

// countTo is the number of messages that count sends; it prints its progress every countSay messages.
const countTo, countSay = 4000, 500

// count makes rank 0 send numbers to rank 1, some in long messages. Rank 1 answers each, prints its
// progress, and reports lost or duplicate messages.
func count() int {
	w, err := mpj.Init(context.Background())
	if err != nil {
		panic(err)
	}
	other := 1 - w.Rank()
	number, long := []int64{0}, make([]int64, 20_000)
	for i := range int64(countTo) {
		message := number
		if i%50 == 0 {
			message = long
		}
		if w.Rank() == 0 {
			message[0] = i
			err = mpj.Send(w.Comm, message, other, 0)
			if err == nil {
				_, err = mpj.Recv(w.Comm, number, other, 0)
			}
		} else {
			_, err = mpj.Recv(w.Comm, message, other, 0)
			if err == nil && message[0] == i {
				number[0] = i
				err = mpj.Send(w.Comm, number, other, 0)
			}
		}
		if err != nil || message[0] != i && w.Rank() == 1 || number[0] != i {
			fmt.Println("message", i, "is", message[0], err)
			return 1
		}
		if w.Rank() == 1 && i%countSay == 0 {
			fmt.Println("at", i)
		}
	}
	if err := w.Finalize(); err != nil {
		panic(err)
	}
	return 0
}

// hold opens a channel from rank 0 to rank 1. It prints when the channel is open, when it breaks, and the
// result of the next attempt. Rank 1 accepts the channel and does nothing.
func hold() int {
	l := enter(version.Protocol)
	l.say(proclink.Init, withKey)
	l.await(proclink.Start)
	if l.self.Rank == 1 {
		l.await(proclink.Bye) // never arrives
	}
	to := view.Process{Rank: 1}
	open := func(m *proclink.Message) { m.Process = &to }
	l.say(proclink.Open, open)
	l.await(proclink.Channel)
	fmt.Println("open")
	if _, err := io.Copy(io.Discard, l.channel); err == nil || errors.Is(err, syscall.ECONNRESET) {
		fmt.Println("broken")
	}
	l.say(proclink.Open, open)
	fmt.Println("then:", l.await(proclink.Refused).Text)
	return 0
}

// script writes a small program that sleeps or becomes this binary. Jobs then stage a hundred bytes instead
// of a hundred megabytes.
func script(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "prog")
	text := fmt.Sprintf("#!/bin/sh\n[ $1 = sleep ] && echo asleep && exec sleep 3600\nexec %s \"$@\"\n", self)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// processesBelow returns the command lines of the processes that run in a folder or below it.
func processesBelow(folder string) []string {
	var found []string
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, folder) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
