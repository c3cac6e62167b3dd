package portmap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/huin/goupnp"
	igd "github.com/huin/goupnp/dcps/internetgateway2"
	"github.com/huin/goupnp/soap"
)

// A control answers the requests to a router.
type control func(told string) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (c control) RoundTrip(r *http.Request) (*http.Response, error) {
	told, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	return c(string(told))
}

// fault returns a router's error response.
func fault(code int) *http.Response {
	body := fmt.Sprintf(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><s:Fault>`+
		`<faultcode>s:Client</faultcode><faultstring>UPnPError</faultstring><detail>`+
		`<UPnPError xmlns="urn:schemas-upnp-org:control-1-0"><errorCode>%d</errorCode><errorDescription>no</errorDescription></UPnPError>`+
		`</detail></s:Fault></s:Body></s:Envelope>`, code)
	return &http.Response{StatusCode: http.StatusInternalServerError, ContentLength: -1, Body: io.NopCloser(strings.NewReader(body))}
}

// TestPermanentMappingIsTheLastResort uses routers whose address contains 725, although their
// error code is another one.
func TestPermanentMappingIsTheLastResort(t *testing.T) {
	tests := map[string]struct {
		answer func() (*http.Response, error)
		want   []string // requested durations
	}{
		"permanent only": {func() (*http.Response, error) { return fault(725), nil }, []string{"120", "0"}},
		"taken":          {func() (*http.Response, error) { return fault(718), nil }, []string{"120"}},
		"7250":           {func() (*http.Response, error) { return fault(7250), nil }, []string{"120"}},
		"gone":           {func() (*http.Response, error) { return nil, errors.New("connection refused") }, []string{"120"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var asked []string
			client := soap.NewSOAPClient(url.URL{Scheme: "http", Host: "192.168.1.1:57255", Path: "/control"})
			client.HTTPClient.Transport = control(func(told string) (*http.Response, error) {
				_, rest, _ := strings.Cut(told, "<NewLeaseDuration>")
				seconds, _, _ := strings.Cut(rest, "<")
				asked = append(asked, seconds)
				return tt.answer()
			})
			r := upnpRouter{&igd.WANIPConnection1{ServiceClient: goupnp.ServiceClient{SOAPClient: client}}, "192.168.1.2"}
			if _, err := r.addMapping(context.Background(), here, 4001, lifetime); err == nil || !slices.Equal(asked, tt.want) {
				t.Errorf("asked for %q seconds, want %q; %v", asked, tt.want, err)
			}
		})
	}
}
