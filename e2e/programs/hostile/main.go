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
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/p2pmpi/p2pmpi/mpj"
)

// What the attacker knows in advance.
var (
	home     = flag.String("home", "/nonexistent", "the owner's and the peer's home")
	outside  = flag.String("outside", "/nonexistent", "a folder of the owner's, with a file secret and a socket")
	peer     = flag.Int("peer", 0, "process ID of the peer")
	victim   = flag.Int("victim", 0, "process ID of a neighbour")
	folder   = flag.String("folder", "/nonexistent", "the neighbour's folder")
	listener = flag.String("listener", "127.0.0.1:1", "address of a TCP listener")
	abstract = flag.String("abstract", "", "name of an abstract socket with a listener")
	setuid   = flag.String("setuid", "", "a setuid copy of id(1) that root owns; none if empty")
	only     = flag.String("only", "", "the one attempt that this child makes")
)

// An attempt returns what it got, or an error that states why it got nothing.
type attempt func() (got string, err error)

// errUntried is the error of an attempt that could not be made and therefore proves nothing.
var errUntried = errors.New("not tried")

// ownChild is not an attempt: it checks that children can work.
const ownChild = "own child"

// groups are the attempts that do not disturb the machine. Each runs in a child process, because
// the system may kill it for the attempt. The exceptions are attempts that inspect the process
// itself.
var groups = map[string]map[string]attempt{
	"files":     files,
	"network":   network,
	"processes": processes,
	"kernel":    kernel,
}

// bombs exhaust a resource of the machine, or do not end.
var bombs = map[string]func(*mpj.World) error{
	"fork":        forkBomb,
	"memory":      memoryBomb,
	"disk":        diskBomb,
	"mapped":      mappedBomb,
	"undumpable":  undumpableBomb,
	"swap":        swapFolders,
	"woken":       wokenBomb,
	"hop":         hopBomb,
	"descriptors": descriptorBomb,
	"output":      outputFlood,
	"sleep":       sleepOn,
	"daemon":      daemon,
	"late":        late,
	"marked":      marked,
	"spy":         spy,
}

// roles are the main functions of child processes.
var roles = map[string]func(){"child": child, "ghost": ghost, "decoy": decoy}

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
		return alone(groups[word])
	}
	world, err := mpj.Init(context.Background())
	if err != nil {
		return err
	}
	// If allowed operations fail too, the failure of forbidden ones proves nothing.
	if err := os.WriteFile("own", nil, 0o600); err != nil {
		return err
	}
	if bomb, ok := bombs[word]; ok {
		return bomb(world)
	}
	group, ok := groups[word]
	if !ok {
		return fmt.Errorf("unknown attack %q", word)
	}
	if *setuid == "" {
		delete(kernel, bySetuid)
	}
	inChild(ownChild)
	for _, name := range slices.Sorted(maps.Keys(group)) {
		if strings.HasPrefix(name, "own ") {
			report(name, group[name])
		} else {
			inChild(name)
		}
	}
	return world.Finalize()
}

// alone makes one attempt of a group.
func alone(group map[string]attempt) error {
	if *only == ownChild {
		fmt.Println(ownChild + ": works")
		return nil
	}
	try, ok := group[*only]
	if !ok {
		return fmt.Errorf("unknown attempt %q", *only)
	}
	report(*only, try)
	return nil
}

// report makes an attempt and prints its line.
func report(name string, try attempt) {
	switch got, err := try(); {
	case errors.Is(err, errUntried):
		fmt.Printf("%s: %v\n", name, err)
	case err != nil:
		fmt.Printf("%s: stopped: %q\n", name, err)
	default:
		fmt.Printf("%s: got %.200q\n", name, got)
	}
}

// inChild makes an attempt in a child process. If the system kills the child for a system call, the
// attempt was stopped. If the child ends without output for another reason, the attempt was not
// made.
func inChild(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, self(), append([]string{"-only=" + name}, os.Args[1:]...)...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	c.WaitDelay = time.Second
	err := c.Run()
	switch text := out.String(); {
	case strings.HasPrefix(text, name+": "):
		fmt.Print(text)
	case killedForCall(c.ProcessState):
		fmt.Printf("%s: stopped: %q\n", name, err)
	default:
		fmt.Printf("%s: %v: %q\n", name, errUntried, fmt.Sprint(err, " ", errs.String()))
	}
}

// killedForCall reports whether a process was killed for a system call that it made.
func killedForCall(p *os.ProcessState) bool {
	if p == nil {
		return false
	}
	s, ok := p.Sys().(syscall.WaitStatus)
	return ok && s.Signaled() && s.Signal() == unix.SIGSYS
}

func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// errNothing is the error of an attempt that found nothing to take.
var errNothing = errors.New("nothing there")

// anyOf makes the attempts one after the other until one succeeds.
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

// call is a system call without useful arguments. Any error except a refusal shows that the system
// would have executed the call.
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

// raw returns a function that makes a system call by its number.
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
