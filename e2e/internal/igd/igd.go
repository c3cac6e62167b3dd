// Package igd implements the UPnP port mapping service of a home router, an Internet gateway device (UPnP
// Forum, InternetGatewayDevice:1), as far as tests need it.
package igd

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/p2pmpi/p2pmpi/e2e/internal/natpmp"
)

// Group is the multicast address for device searches.
var Group = &net.UDPAddr{IP: net.IPv4(239, 255, 255, 250), Port: 1900}

const (
	device  = "urn:schemas-upnp-org:device:InternetGatewayDevice:1"
	service = "urn:schemas-upnp-org:service:WANIPConnection:1"
)

// Announce answers searches on conn, a socket of Group, until conn is closed. The description of
// the device is at location, a URL of Handler.
func Announce(conn net.PacketConn, location string) {
	datagram := make([]byte, 2048)
	for {
		n, from, err := conn.ReadFrom(datagram)
		if err != nil {
			return
		}
		if found(datagram[:n]) {
			fmt.Fprintf(writerTo{conn, from}, "HTTP/1.1 200 OK\r\nCACHE-CONTROL: max-age=120\r\nEXT:\r\nLOCATION: %s\r\nSERVER: test\r\nST: %s\r\nUSN: uuid:1::%[2]s\r\n\r\n", location, device)
		}
	}
}

type writerTo struct {
	conn net.PacketConn
	to   net.Addr
}

// Write implements io.Writer.
func (w writerTo) Write(b []byte) (int, error) { return w.conn.WriteTo(b, w.to) }

// found reports whether a datagram searches for this device.
func found(datagram []byte) bool {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(datagram)))
	return err == nil && r.Method == "M-SEARCH" && r.Header.Get("St") == device
}

const description = `<?xml version="1.0"?>
<root xmlns="urn:schemas-upnp-org:device-1-0"><specVersion><major>1</major><minor>0</minor></specVersion>
<device><deviceType>` + device + `</deviceType><friendlyName>router</friendlyName><UDN>uuid:1</UDN><deviceList>
<device><deviceType>urn:schemas-upnp-org:device:WANDevice:1</deviceType><UDN>uuid:2</UDN><deviceList>
<device><deviceType>urn:schemas-upnp-org:device:WANConnectionDevice:1</deviceType><UDN>uuid:3</UDN><serviceList>
<service><serviceType>` + service + `</serviceType><serviceId>urn:upnp-org:serviceId:WANIPConn1</serviceId>
<SCPDURL>/scpd</SCPDURL><controlURL>/control</controlURL><eventSubURL>/events</eventSubURL></service>
</serviceList></device></deviceList></device></deviceList></device></root>`

// Handler serves the device's description and its control actions. external is the router's external address.
// add creates a mapping at the requested port or, if the mapping has no lifetime, removes the mapping at that
// port. There are no permanent mappings.
func Handler(external netip.Addr, add func(natpmp.Mapping) error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, description) })
	mux.HandleFunc("POST /control", func(w http.ResponseWriter, r *http.Request) {
		_, action, _ := strings.Cut(strings.Trim(r.Header.Get("Soapaction"), `"`), "#")
		out, err := act(action, http.MaxBytesReader(w, r.Body, 1<<16), external, add)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			out = `<s:Fault><faultcode>s:Client</faultcode><faultstring>UPnPError</faultstring><detail>` +
				`<UPnPError xmlns="urn:schemas-upnp-org:control-1-0"><errorCode>501</errorCode><errorDescription>Action Failed</errorDescription></UPnPError></detail></s:Fault>`
		}
		fmt.Fprintf(w, `<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" `+
			`s:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/"><s:Body>%s</s:Body></s:Envelope>`, out)
	})
	return mux
}

// arguments are the arguments of AddPortMapping.
type arguments struct {
	External uint16 `xml:"Body>AddPortMapping>NewExternalPort"`
	Protocol string `xml:"Body>AddPortMapping>NewProtocol"`
	Internal uint16 `xml:"Body>AddPortMapping>NewInternalPort"`
	Client   string `xml:"Body>AddPortMapping>NewInternalClient"`
	Seconds  int64  `xml:"Body>AddPortMapping>NewLeaseDuration"`
}

// deletion holds the arguments of DeletePortMapping.
type deletion struct {
	External uint16 `xml:"Body>DeletePortMapping>NewExternalPort"`
	Protocol string `xml:"Body>DeletePortMapping>NewProtocol"`
}

// act executes the action in an envelope, and returns the answer.
func act(action string, envelope io.Reader, external netip.Addr, add func(natpmp.Mapping) error) (string, error) {
	answer := func(inside string) string {
		return fmt.Sprintf(`<u:%sResponse xmlns:u="%s">%s</u:%[1]sResponse>`, action, service, inside)
	}
	switch action {
	case "GetExternalIPAddress":
		return answer("<NewExternalIPAddress>" + external.String() + "</NewExternalIPAddress>"), nil
	case "DeletePortMapping":
		var d deletion
		if err := xml.NewDecoder(envelope).Decode(&d); err != nil {
			return "", err
		}
		return answer(""), add(natpmp.Mapping{Protocol: strings.ToLower(d.Protocol), External: d.External})
	case "AddPortMapping":
		var a arguments
		if err := xml.NewDecoder(envelope).Decode(&a); err != nil {
			return "", err
		}
		if a.Seconds <= 0 {
			return "", errors.New("permanent mappings are not supported")
		}
		client, err := netip.ParseAddr(a.Client)
		if err != nil {
			return "", err
		}
		return answer(""), add(natpmp.Mapping{
			Protocol: strings.ToLower(a.Protocol), External: a.External,
			Internal: netip.AddrPortFrom(client, a.Internal), Lifetime: time.Duration(a.Seconds) * time.Second,
		})
	}
	return "", errors.New("no such action")
}
