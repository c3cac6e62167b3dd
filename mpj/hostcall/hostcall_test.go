package hostcall

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/p2pmpi/p2pmpi/internal/view"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine/direct"
	"github.com/p2pmpi/p2pmpi/mpj/internal/engine/protected"
	"github.com/p2pmpi/p2pmpi/mpj/internal/join"
	"github.com/p2pmpi/p2pmpi/mpj/internal/messagelog"
	"github.com/p2pmpi/p2pmpi/mpj/internal/protect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A module is a fake module that consists only of its memory.
type module struct {
	*Process
	memory []byte
	times  []float64
	waited time.Duration
	state  []byte // state of the clock and the random numbers
}

func newModule(t testing.TB, size int) *module {
	m := &module{memory: make([]byte, size)}
	m.Process = New(Config{
		Memory: func(at, size uint32) ([]byte, bool) {
			if uint64(at)+uint64(size) > uint64(len(m.memory)) {
				return nil, false
			}
			return m.memory[at : at+size], true
		},
		Told:   func(seconds float64) { m.times = append(m.times, seconds) },
		Waited: func(d time.Duration) { m.waited += d },
		Lost:   func(error) {},
		Save:   func() []byte { return m.state },
		Restore: func(b []byte) error {
			m.state = b
			return nil
		},
	})
	t.Cleanup(m.Close)
	return m
}

// alone gives m the engine of a job of one rank.
func (m *module) alone() *module {
	m.use(engine.New(m.background.ctx, engine.Config{View: oneRank, Transport: direct.New, Clock: func() time.Duration { return 5 * time.Second }}), 1)
	return m
}

// call calls a function by its name, and returns a Fault as an error.
func (m *module) call(name string, args ...uint64) (result uint64, fault error) {
	defer func() {
		if r := recover(); r != nil {
			fault = r.(Fault)
		}
	}()
	i := slices.IndexFunc(Functions, func(f Function) bool { return f.Name == name })
	stack := append(slices.Clone(args), 0)
	m.Call(&Functions[i], stack)
	return stack[0] & math.MaxUint32, nil
}

func (m *module) word(at int) uint32 { return binary.LittleEndian.Uint32(m.memory[at:]) }

const (
	anyContext = 256
	any32      = math.MaxUint32 // -1
)

func TestMessageToSelf(t *testing.T) {
	m := newModule(t, 4096).alone()
	copy(m.memory[100:], "hello")
	if code, err := m.call("isend", anyContext, 0, 7, 100, 5, 0, 0); code != 0 || err != nil {
		t.Fatal(code, err)
	}
	if code, err := m.call("recv", anyContext, any32, any32, 200, 10, 16, 0); code != 0 || err != nil {
		t.Fatal(code, err)
	}
	if got := string(m.memory[200:205]); got != "hello" || m.word(16) != 0 || m.word(20) != 7 || m.word(24) != 5 {
		t.Errorf("the module received %q, status %v", got, m.memory[16:32])
	}
	m.call("isend", anyContext, 0, 7, 100, 5, 0, 0)
	if code, _ := m.call("recv", anyContext, 0, 7, 200, 4, 16, 0); code != uint64(truncated) || m.word(24) != 5 {
		t.Errorf("message longer than the buffer: code %d, size %d", code, m.word(24))
	}
}

func TestBackgroundCallWritesItsResultWhenCollected(t *testing.T) {
	m := newModule(t, 4096).alone()
	if code, _ := m.call("recv", anyContext, 0, 7, 200, 10, 16, 42); uint32(code) != pending {
		t.Fatalf("code %d", code)
	}
	if none, _ := m.call("next", 0, 64); none != 0 {
		t.Fatal("the receive completed without a message")
	}
	copy(m.memory[100:], "hello")
	m.call("isend", anyContext, 0, 7, 100, 5, 0, 0)
	if one, _ := m.call("next", uint64(time.Minute), 64); one != 1 || m.word(64) != 42 || m.word(68) != 0 {
		t.Fatalf("got %d, ticket %d, code %d", one, m.word(64), m.word(68))
	}
	if string(m.memory[200:205]) != "hello" || m.word(24) != 5 {
		t.Errorf("the module received %q", m.memory[200:210])
	}
}

func TestNextWaitsUntilItsTimeout(t *testing.T) {
	m := newModule(t, 4096).alone()
	m.call("recv", anyContext, 0, 7, 200, 10, 16, 42)
	const timeout = 2 * time.Millisecond
	if one, _ := m.call("next", uint64(timeout), 64); one != 0 || m.waited < timeout {
		t.Errorf("got %d, waited %v, want %v", one, m.waited, timeout)
	}
}

func TestAbandonedWaitEnds(t *testing.T) {
	m := newModule(t, 4096).alone()
	m.call("irecv", anyContext, 0, 7, 200, 10, 0)
	m.call("wait_until", uint64(m.word(0)), 4, 9)
	m.call("give_up", 9)
	if one, _ := m.call("next", uint64(time.Minute), 64); one != 1 || m.word(64) != 9 || m.word(4) != 0 {
		t.Errorf("got %d, ticket %d, done %d", one, m.word(64), m.word(4))
	}
}

// TestHandlesOutliveTheEngine checks that the end of the engine is not a fault of the module. Each
// call returns an error, and the module may still finish operations that it has begun.
func TestHandlesOutliveTheEngine(t *testing.T) {
	m := newModule(t, 4096).alone()
	m.call("irecv", anyContext, 0, 7, 200, 10, 0)
	receive := uint64(m.word(0))
	operation, _ := m.call("begin")
	m.call("fail")
	for range 2 {
		for _, handle := range []uint64{receive, operation} {
			if code, err := m.call("wait", handle, 16, 0); code == 0 || err != nil {
				t.Errorf("handle %d: code %d, %v", handle, code, err)
			}
		}
	}
	if _, err := m.call("finish", operation); err != nil {
		t.Error(err)
	}
}

// replica gives m the engine of a replica that keeps messages for new replicas. No other replica
// exists.
func (m *module) replica(t *testing.T) *module {
	log, err := messagelog.New(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	v := view.New(1, 2)
	c := join.Config(view.Process{}, v, nil)
	c.Transport = protected.New(protected.Config{Protocol: protect.For(view.Process{}, v, false), Log: log})
	m.use(engine.New(m.background.ctx, c), 1)
	return m
}

func TestCheckpointSavesTheStateThatTheModuleWrites(t *testing.T) {
	m := newModule(t, 4096).replica(t)
	m.state = []byte("clock")
	for _, outcome := range []uint64{outcomeWell, outcomeNot, outcomeFailed} {
		if code, err := m.call("checkpoint", 16, 0); code != 0 || err != nil || m.word(16) != stepSave {
			t.Fatalf("code %d, step %d, %v", code, m.word(16), err)
		}
		if _, err := m.call("checkpoint", 16, 0); err == nil {
			t.Error("a checkpoint was accepted during a checkpoint")
		}
		if code, err := m.call("checkpoint_write", 100, 50); code != 0 || err != nil {
			t.Errorf("write: code %d, %v", code, err)
		}
		if _, err := m.call("checkpoint_read", 100, 50); err == nil {
			t.Error("the state was read while saving")
		}
		want := ok
		if outcome == outcomeFailed {
			want = other
		}
		if code, err := m.call("checkpoint_end", outcome, 200, 5, 16, 0); code != uint64(want) || err != nil || m.word(16) != stepNone {
			t.Errorf("outcome %d: code %d, step %d, %v", outcome, code, m.word(16), err)
		}
		if _, err := m.call("checkpoint_write", 100, 50); err == nil {
			t.Error("the state was written after the end of the checkpoint")
		}
	}
}

// TestCloseEndsACheckpoint ends a module during a checkpoint.
func TestCloseEndsACheckpoint(t *testing.T) {
	m := newModule(t, 4096).replica(t)
	if code, err := m.call("checkpoint", 16, 0); code != 0 || err != nil || m.word(16) != stepSave {
		t.Fatalf("code %d, step %d, %v", code, m.word(16), err)
	}
	m.Close()
}

func TestTakeStateReturnsWhatFollowsTheState(t *testing.T) {
	var state string
	restore := func(b []byte) error {
		state = string(b)
		return nil
	}
	b := append(appendState(nil, []byte("clock")), "own"...)
	if own := takeState(b, restore); string(own) != "own" || state != "clock" {
		t.Errorf("the own part is %q, the program's state %q", own, state)
	}
	for cut := range len("clock") + 1 {
		func() {
			defer func() {
				if _, isFault := recover().(Fault); !isFault {
					t.Errorf("the first %d bytes alone were accepted", cut)
				}
			}()
			takeState(b[:cut], restore)
		}()
	}
}

func TestWtimeReturnsTheTime(t *testing.T) {
	m := newModule(t, 64).alone()
	if m.call("wtime", 8, 0); len(m.times) != 1 || m.times[0] != math.Float64frombits(binary.LittleEndian.Uint64(m.memory[8:])) || m.times[0] != 5 {
		t.Errorf("the recorded times are %v, want one", m.times)
	}
}

func TestInvalidCallsAreFaults(t *testing.T) {
	for name, call := range map[string]struct {
		function string
		args     []uint64
	}{
		"buffer beyond the memory":  {"send", []uint64{256, 0, 0, 4090, 100, 0, 0}},
		"buffer that wraps around":  {"send", []uint64{256, 0, 0, math.MaxUint32, 2, 0, 0}},
		"status beyond the memory":  {"recv", []uint64{256, 0, 0, 0, 10, 4095, 0}},
		"rank outside the job":      {"send", []uint64{256, 1, 0, 0, 10, 0, 0}},
		"negative rank":             {"send", []uint64{256, any32, 0, 0, 10, 0, 0}},
		"the engine's own context":  {"isend", []uint64{0, 0, 0, 0, 10, 0, 0}},
		"unknown mode":              {"isend", []uint64{256, 0, 0, 0, 10, 3, 0}},
		"unknown request":           {"wait", []uint64{1, 0, 0}},
		"more requests than memory": {"waitany", []uint64{0, 1 << 31, 0, 0}},
		"more parts than memory":    {"exchange", []uint64{256, 0, 0, 1 << 28, 0, 0, 0}},
		"unknown message":           {"imrecv", []uint64{7, 0, 10, 0}},
		"unknown contents":          {"take", []uint64{1, 0, 10}},
		"abort before join":         {"abort", []uint64{1, 0, 5}},
		"finish of no request":      {"finish", []uint64{0}},
	} {
		t.Run(name, func(t *testing.T) {
			_, fault := newModule(t, 4096).alone().call(call.function, call.args...)
			if !errors.As(fault, new(Fault)) {
				t.Errorf("the call returned %v, want a Fault", fault)
			}
		})
	}
}

func TestCallsBeforeJoinFail(t *testing.T) {
	m := newModule(t, 4096)
	if code, err := m.call("send", anyContext, 0, 0, 0, 5, 0, 0); code != uint64(closed) || err != nil {
		t.Errorf("code %d, %v", code, err)
	}
}

// FuzzCalls makes arbitrary calls, with and without an engine. Whatever a module does, only the
// module ends: no panic other than a Fault may occur.
func FuzzCalls(f *testing.F) {
	f.Add([]byte{8, 0, 1, 0, 0, 0, 0, 0, 7, 0, 0, 0, 100, 0, 0, 0, 5, 0, 0, 0})
	for i := range Functions {
		f.Add([]byte{byte(i), 1, 1, 0, 1, 0, 2, 0, 3, 0, 4, 0, 0, 0, 255, 255, 255, 255})
	}
	f.Fuzz(func(t *testing.T, calls []byte) {
		with, without := newModule(t, 4096).alone(), newModule(t, 4096)
		for len(calls) > 0 {
			function := &Functions[int(calls[0])%len(Functions)]
			args := make([]uint64, len(function.Params))
			calls = calls[1:]
			for i := range args {
				if n := min(2, len(calls)); n == 2 {
					args[i] = uint64(uint32(int32(int16(binary.LittleEndian.Uint16(calls)))))
					calls = calls[n:]
				}
			}
			if function.Name == "next" {
				args[0] = 0 // otherwise the call would block
			}
			without.call(function.Name, args...)
			if blocks[function.Name] {
				args[len(args)-1] = 1 // otherwise the call would block
			}
			if function.Name != "close" {
				with.call(function.Name, args...)
			}
		}
	})
}

// blocks contains the functions whose last parameter is later.
var blocks = func() map[string]bool {
	names := make(map[string]bool)
	for _, name := range []string{
		"join", "finalize", "send", "recv", "recv_whole", "sendrecv", "swap", "exchange", "wait", "waitany", "waitsome",
		"testany", "testsome", "testall", "wait_until", "probe_until", "probe", "iprobe", "mprobe", "improbe",
		"choose", "wtime", "random_seed", "flush", "checkpoint", "checkpoint_end", "printed", "skip",
	} {
		names[name] = true
	}
	return names
}()
