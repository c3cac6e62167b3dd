package wasm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/tetratelabs/wazero/sys"

	"github.com/p2pmpi/p2pmpi/internal/version"
)

// examineModule is a module that tests an engine. It reads the clock, which is a call that does not wait, and
// makes an empty call that may wait. It traps if it gets no time, and finally reads beyond its memory.
const examineModule = "\x00asm\x01\x00\x00\x00" +
	"\x01\x13\x03\x60\x00\x00\x60\x03\x7f\x7e\x7f\x01\x7f\x60\x04\x7f\x7f\x7f\x7f\x01\x7f" +
	"\x02\x4e\x02\x16wasi_snapshot_preview1\x0eclock_time_get\x00\x01\x16wasi_snapshot_preview1\x0bpoll_oneoff\x00\x02" +
	"\x03\x02\x01\x00\x05\x03\x01\x00\x01\x07\x0a\x01\x06_start\x00\x02\x0a\x2b\x01\x29\x00" +
	"\x41\x01\x42\x00\x41\x00\x10\x00\x04\x40\x00\x0b" + // if clock_time_get(1, 0, 0) != 0 then trap
	"\x41\x00\x29\x03\x00\x50\x04\x40\x00\x0b" + // if the time is 0 then trap
	"\x41\x00\x41\x00\x41\x00\x41\x00\x10\x01\x1a" + // poll_oneoff(0, 0, 0, 0)
	"\x41\x70\x28\x02\x00\x1a\x0b" // load from address -16, which is out of bounds

// examine tests the engine in the sandbox of this process, and prints the engine's name and the version from
// which it was built.
func examine(ctx context.Context, e Engine) int {
	defer os.RemoveAll(compiled)
	var module Module
	for range 2 { // the second time with the compiled code of the first
		var err error
		if module, err = e.Load(ctx, []byte(examineModule), compiled, 1); err != nil {
			return tell(exitNotRunnable, err)
		}
	}
	h := newHost(Config{}, nil)
	defer h.close()
	var exit *sys.ExitError
	err := module.Run(ctx, h)
	if err == nil || errors.As(err, &exit) {
		return tell(exitNotRunnable, errors.New("it lets modules read beyond their memory"))
	}
	if !strings.Contains(err.Error(), "out of bounds") {
		return tell(exitNotRunnable, fmt.Errorf("the test module ended before it read beyond its memory: %w", err))
	}
	fmt.Println(e.Name(), source)
	return 0
}

// runner is the version of the interface between a peer and its runners that version.Protocol does not
// cover: Config, the format of standard input, exit statuses. It changes with that interface.
const runner = 2

// source identifies the version from which an engine was built.
var source = fmt.Sprintf("protocol %d runner %d", version.Protocol, runner)

// engineName matches valid engine names, which are parts of file names.
var engineName = regexp.MustCompile(`^[a-z0-9][a-zA-Z0-9._+-]{0,99}$`)

// Examined returns the name of an engine from its output when it was examined. It returns an error if the
// engine was built from another version of this project.
func Examined(said string) (name string, err error) {
	name, from, _ := strings.Cut(said, " ")
	switch {
	case !engineName.MatchString(name):
		return "", fmt.Errorf("it is not an engine: it prints %q", said)
	case from != source:
		return "", fmt.Errorf("it was built from another version of this project (%q, this is %q): rebuild it", from, source)
	}
	return name, nil
}
