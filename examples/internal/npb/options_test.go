package npb

import (
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	plain := Kernel{Name: "cg", Classes: []string{"S", "W"}}
	alone := Kernel{Name: "ep", Classes: []string{"S", "W"}, Sequential: true}
	for _, tc := range []struct {
		name   string
		kernel Kernel
		args   string
		want   options
		usage  bool
	}{
		{name: "the first class is the default", kernel: plain, want: options{class: "S"}},
		{name: "a class by itself", kernel: plain, args: "w", want: options{class: "W"}},
		{name: "a class by name", kernel: plain, args: "-class W -times", want: options{class: "W", times: true}},
		{name: "alone", kernel: alone, args: "-sequential W", want: options{class: "W", sequential: true}},
		{name: "a kernel without -sequential", kernel: plain, args: "-sequential", usage: true},
		{name: "an unknown class", kernel: plain, args: "Z", usage: true},
		{name: "two classes", kernel: plain, args: "S W", usage: true},
		{name: "help", kernel: plain, args: "-h", usage: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.kernel.parse(strings.Fields(tc.args))
			if tc.usage != errors.Is(err, ErrUsage) || !tc.usage && got != tc.want {
				t.Errorf("arguments %q: got %+v, %v; want %+v", tc.args, got, err, tc.want)
			}
		})
	}
}
