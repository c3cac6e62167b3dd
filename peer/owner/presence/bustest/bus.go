// Package bustest provides a fake system bus for tests, whose services have the properties that the test
// sets.
package bustest

import (
	"bufio"
	"encoding/binary"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"
)

// A Bus answers requests for properties of objects. Its methods are safe for concurrent use.
type Bus struct {
	serving sync.WaitGroup

	mu    sync.Mutex
	says  map[string]any
	hangs string
	asked []dbus.Flags
}

// Start makes this process use a new bus as its system bus until the test ends. All connections to it must
// have ended by then.
func Start(t testing.TB) *Bus {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bus")
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+path)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	b := &Bus{says: make(map[string]any)}
	b.serving.Go(func() { b.accept(listener) }) // ends with the listener
	t.Cleanup(func() { listener.Close(); b.serving.Wait() })
	return b
}

// Say sets the value of a property, INTERFACE.NAME. Requests for other properties fail.
func (b *Bus) Say(property string, value any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.says[property] = value
}

// Hang makes the bus stop answering at the given line of the handshake, or method.
func (b *Bus) Hang(at string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hangs = at
}

// Asked returns the flags of all requests for properties so far.
func (b *Bus) Asked() []dbus.Flags {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.asked)
}

func (b *Bus) hangsAt(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hangs != "" && b.hangs == name
}

func (b *Bus) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		b.serving.Go(func() { // ends with the connection
			defer conn.Close()
			in := bufio.NewReader(conn)
			if b.greet(conn, in) {
				b.answer(conn, in)
			}
		})
	}
}

// greet performs the handshake and accepts every client.
func (b *Bus) greet(conn net.Conn, in *bufio.Reader) bool {
	replies := map[string]string{
		"AUTH": "REJECTED EXTERNAL\r\n", "AUTH EXTERNAL": "DATA\r\n", "DATA": "OK 0123\r\n", "BEGIN": "",
	}
	for line := ""; line != "BEGIN"; {
		text, err := in.ReadString('\n')
		if err != nil {
			return false
		}
		line = strings.TrimRight(strings.TrimLeft(text, "\x00"), "\r\n")
		if b.hangsAt(line) {
			continue
		}
		reply, known := replies[line]
		if !known {
			reply = "ERROR\r\n"
		}
		conn.Write([]byte(reply))
	}
	return true
}

// answer answers method calls: Hello, and requests for properties.
func (b *Bus) answer(conn net.Conn, in *bufio.Reader) {
	for {
		m, err := dbus.DecodeMessage(in)
		if err != nil {
			return
		}
		method, _ := m.Headers[dbus.FieldMember].Value().(string)
		reply := &dbus.Message{Type: dbus.TypeMethodReply, Body: []any{":1.1"}, Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldReplySerial: dbus.MakeVariant(m.Serial()),
		}}
		if method == "Get" {
			b.get(m, reply)
		}
		if b.hangsAt(method) {
			continue
		}
		reply.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(reply.Body...))
		if reply.EncodeTo(conn, binary.LittleEndian) != nil {
			return
		}
	}
}

// get fills in the reply to a request for a property.
func (b *Bus) get(question, reply *dbus.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, question.Flags)
	var of, name string
	if err := dbus.Store(question.Body, &of, &name); err == nil {
		if value, said := b.says[of+"."+name]; said {
			reply.Body = []any{dbus.MakeVariant(value)}
			return
		}
	}
	reply.Type = dbus.TypeError
	reply.Headers[dbus.FieldErrorName] = dbus.MakeVariant("org.freedesktop.DBus.Error.UnknownProperty")
	reply.Body = []any{"no such property"}
}
