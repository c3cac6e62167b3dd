package igd

import (
	"errors"
	"net"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/huin/goupnp/dcps/internetgateway2"

	"github.com/p2pmpi/p2pmpi/e2e/internal/natpmp"
)

// TestRouterMapsPorts tests the router with the library that peers use.
func TestRouterMapsPorts(t *testing.T) {
	var added natpmp.Mapping
	server := httptest.NewServer(Handler(netip.MustParseAddr("11.0.1.1"), func(m natpmp.Mapping) error {
		added = m
		if m.External == 1 {
			return errors.New("taken")
		}
		return nil
	}))
	defer server.Close()
	at, err := url.Parse(server.URL + "/root.xml")
	if err != nil {
		t.Fatal(err)
	}
	clients, err := internetgateway2.NewWANIPConnection1ClientsByURLCtx(t.Context(), at)
	if err != nil || len(clients) != 1 {
		t.Fatalf("%d connections, %v", len(clients), err)
	}
	c := clients[0]
	if got, err := c.GetExternalIPAddressCtx(t.Context()); got != "11.0.1.1" {
		t.Errorf("address %q, %v", got, err)
	}
	add := func(outside uint16) error {
		return c.AddPortMappingCtx(t.Context(), "", outside, "TCP", 4001, "192.168.1.2", true, "test", 60)
	}
	want := natpmp.Mapping{Protocol: "tcp", External: 5001, Internal: netip.MustParseAddrPort("192.168.1.2:4001"), Lifetime: time.Minute}
	if err := add(5001); err != nil || added != want {
		t.Errorf("the router added %v, %v; want %v", added, err, want)
	}
	if add(1) == nil {
		t.Error("a port in use was mapped")
	}
	gone := natpmp.Mapping{Protocol: "tcp", External: 5001}
	if err := c.DeletePortMappingCtx(t.Context(), "", 5001, "TCP"); err != nil || added != gone {
		t.Errorf("the router removed %v, %v; want %v", added, err, gone)
	}
	if c.AddPortMappingCtx(t.Context(), "", 5001, "TCP", 4001, "192.168.1.2", true, "test", 0) == nil {
		t.Error("a permanent mapping was accepted")
	}
	if _, _, err := c.GetNATRSIPStatusCtx(t.Context()); err == nil {
		t.Error("an unknown action succeeded")
	}
}

func TestSearchesAreAnswered(t *testing.T) {
	server, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // ends with server
		defer close(done)
		Announce(server, "http://192.168.1.1/")
	}()
	defer func() {
		server.Close()
		<-done
	}()
	client, err := net.DialUDP("udp4", nil, server.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	client.SetDeadline(time.Now().Add(20 * time.Second))
	for _, target := range []string{"urn:other", device} { // the first gets no answer
		client.Write([]byte("M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: \"ssdp:discover\"\r\nMX: 1\r\nST: " + target + "\r\n\r\n"))
	}
	answer := make([]byte, 2048)
	n, err := client.Read(answer)
	if got := string(answer[:n]); err != nil || !strings.Contains(got, "LOCATION: http://192.168.1.1/\r\n") || !strings.Contains(got, "ST: "+device+"\r\n") {
		t.Errorf("the router answered %q, %v", got, err)
	}
	client.SetDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := client.Read(answer); err == nil {
		t.Errorf("also got %q", answer[:n])
	}
}
