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

// A control answers requests in place of a router. It gets the body of a request.
type control func(body string) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (c control) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	return c(string(body))
}

// fault returns a router's error response.
func fault(code int) *http.Response {
	body := fmt.Sprintf(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><s:Fault>`+
		`<faultcode>s:Client</faultcode><faultstring>UPnPError</faultstring><detail>`+
		`<UPnPError xmlns="urn:schemas-upnp-org:control-1-0"><errorCode>%d</errorCode><errorDescription>no</errorDescription></UPnPError>`+
		`</detail></s:Fault></s:Body></s:Envelope>`, code)
	return &http.Response{StatusCode: http.StatusInternalServerError, ContentLength: -1, Body: io.NopCloser(strings.NewReader(body))}
}

// TestPermanentMappingIsTheLastResort checks that only the error code 725 leads to a permanent mapping. The
// router's address contains 725 too, in its port.
func TestPermanentMappingIsTheLastResort(t *testing.T) {
	tests := map[string]struct {
		answer func() (*http.Response, error)
		want   []string // requested durations
	}{
		"permanent only": {func() (*http.Response, error) { return fault(725), nil }, []string{"120", "0"}},
		"port in use":    {func() (*http.Response, error) { return fault(718), nil }, []string{"120"}},
		"code 7250":      {func() (*http.Response, error) { return fault(7250), nil }, []string{"120"}},
		"no router":      {func() (*http.Response, error) { return nil, errors.New("connection refused") }, []string{"120"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var asked []string
			client := soap.NewSOAPClient(url.URL{Scheme: "http", Host: "192.168.1.1:57255", Path: "/control"})
			client.HTTPClient.Transport = control(func(body string) (*http.Response, error) {
				_, rest, _ := strings.Cut(body, "<NewLeaseDuration>")
				seconds, _, _ := strings.Cut(rest, "<")
				asked = append(asked, seconds)
				return tt.answer()
			})
			r := upnpRouter{&igd.WANIPConnection1{ServiceClient: goupnp.ServiceClient{SOAPClient: client}}, "192.168.1.2"}
			if _, err := r.addMapping(context.Background(), here, 4001, lifetime); err == nil || !slices.Equal(asked, tt.want) {
				t.Errorf("requested %q seconds, with error %v; want %q and an error", asked, err, tt.want)
			}
		})
	}
}
