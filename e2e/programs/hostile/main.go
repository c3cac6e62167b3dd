//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// What the attacker has found out before.
var (
	home     = flag.String("home", "/nonexistent", "the owner's and the peer's home")
	outside  = flag.String("outside", "/nonexistent", "a folder of the owner's, with a file secret and a socket")
	peer     = flag.Int("peer", 0, "process ID of the peer")
	victim   = flag.Int("victim", 0, "process ID of a neighbour")
	folder   = flag.String("folder", "/nonexistent", "the neighbour's folder")
	listener = flag.String("listener", "127.0.0.1:1", "where somebody listens with TCP")
	abstract = flag.String("abstract", "", "an abstract socket on which somebody listens")
	only     = flag.String("only", "", "the one attempt that this child makes")
)

// An attempt says what it got, or returns why nothing.
type attempt func() (got string, err error)

// groups are the attempts that leave the machine in peace. Each is made in a child, which may be
// killed for it, but those that look at what the process itself has got.
var groups = map[string]map[string]attempt{
	"files":     files,
	"network":   network,
	"processes": processes,
	"kernel":    kernel,
}

// bombs use up what a machine has, or do not end.
var bombs = map[string]func(*mpj.World) error{
	"fork":        forkBomb,
	"memory":      memoryBomb,
	"disk":        diskBomb,
	"mapped":      mappedBomb,
	"undumpable":  undumpableBomb,
	"swap":        swapFolders,
	"descriptors": descriptorBomb,
	"output":      outputFlood,
	"sleep":       sleepOn,
	"daemon":      daemon,
	"late":        late,
	"marked":      marked,
	"spy":         spy,
}

// roles are what children do.
var roles = map[string]func(){"child": child, "ghost": ghost}

func main() {
	flag.Parse()
	if err := run(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

func run(word string) error {
	if role, ok := roles[word]; ok {
		role()
		return nil
	}
	if *only != "" {
		report(*only, groups[word][*only])
		return nil
	}
	world, err := mpj.Init(context.Background())
	if err != nil {
		return err
	}
	// What cannot do what it may proves nothing by what it may not.
	if err := os.WriteFile("own", nil, 0o600); err != nil {
		return err
	}
	if bomb, ok := bombs[word]; ok {
		return bomb(world)
	}
	group, ok := groups[word]
	if !ok {
		return fmt.Errorf("no attack %q", word)
	}
	for _, name := range slices.Sorted(maps.Keys(group)) {
		if strings.HasPrefix(name, "own ") {
			report(name, group[name])
		} else {
			inChild(name)
		}
	}
	return world.Finalize()
}

// report prints one line.
func report(name string, try attempt) {
	got, err := try()
	if err != nil {
		fmt.Printf("%s: stopped: %q\n", name, err)
		return
	}
	fmt.Printf("%s: got %.200q\n", name, got)
}

// inChild makes an attempt in a process of its own: a system that kills for it has stopped it.
func inChild(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, self(), append([]string{"-only=" + name}, os.Args[1:]...)...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	c.WaitDelay = time.Second
	err := c.Run()
	switch text := out.String(); {
	case strings.HasPrefix(text, name+": "):
		fmt.Print(text)
	default:
		fmt.Printf("%s: stopped: %q\n", name, fmt.Sprint("killed: ", err, " ", errs.String()))
	}
}

func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// errNothing is of an attempt that found nothing to take.
var errNothing = errors.New("nothing there")

// anyOf makes the attempts one after the other until one gets something.
func anyOf(tries ...attempt) attempt {
	return func() (string, error) {
		var all error
		for _, try := range tries {
			got, err := try()
			if err == nil {
				return got, nil
			}
			all = errors.Join(all, err)
		}
		return "", all
	}
}

// call is a system call that has no sensible arguments: any error but a refusal says that the
// system would have done it.
func call(name string, f func() error) attempt {
	return func() (string, error) {
		err := f()
		for _, refusal := range []error{unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT, unix.ENODEV} {
			if errors.Is(err, refusal) {
				return "", fmt.Errorf("%s: %w", name, err)
			}
		}
		return fmt.Sprintf("%s: %v", name, err), nil
	}
}

// raw is a call by number.
func raw(number uintptr, args ...uintptr) func() error {
	return func() error {
		var a [6]uintptr
		copy(a[:], args)
		if _, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
			return errno
		}
		return nil
	}
}
