package control

import (
	"net"
	"testing"
)

func TestClientsUserIsKnownForUnixSocketsOnly(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if user, known := userOf(a); known {
		t.Errorf("user %d", user)
	}
}
