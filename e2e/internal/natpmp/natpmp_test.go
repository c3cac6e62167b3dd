package natpmp

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"
)

func TestAnswers(t *testing.T) {
	mapTCP := []byte{0, 2, 0, 0, 0x10, 0x01, 0x20, 0x02, 0, 0, 0, 60}
	tests := map[string]struct {
		request, want []byte
		add           error
		added         Mapping
	}{
		"address":       {request: []byte{0, 0}, want: []byte{0, 128, 0, 0, 0, 0, 0, 1, 11, 0, 1, 1}},
		"mapping":       {request: mapTCP, want: []byte{0, 130, 0, 0, 0, 0, 0, 1, 0x10, 0x01, 0x20, 0x02, 0, 0, 0, 60}, added: Mapping{"tcp", 0x2002, netip.MustParseAddrPort("192.168.1.2:4097"), time.Minute}},
		"no room":       {request: mapTCP, want: []byte{0, 130, 0, 4, 0, 0, 0, 1, 0x10, 0x01, 0x20, 0x02, 0, 0, 0, 60}, add: errors.New("full"), added: Mapping{"tcp", 0x2002, netip.MustParseAddrPort("192.168.1.2:4097"), time.Minute}},
		"other version": {request: []byte{2, 0}},
		"cut short":     {request: []byte{0}},
		"no ports":      {request: []byte{0, 1, 0, 0}, want: []byte{0, 129, 0, 5, 0, 0, 0, 1}},
		"unknown":       {request: []byte{0, 9}, want: []byte{0, 137, 0, 5, 0, 0, 0, 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var added Mapping
			got := answer(tt.request, netip.MustParseAddr("192.168.1.2"), netip.MustParseAddr("11.0.1.1"), func(m Mapping) error {
				added = m
				return tt.add
			})
			if !bytes.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if added != tt.added {
				t.Errorf("the router added %v, want %v", added, tt.added)
			}
		})
	}
}
