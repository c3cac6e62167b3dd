package machine

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/cpuid/v2"
)

func TestSpeedIsTheBestMeasurement(t *testing.T) {
	keep := func(file string, s speed) {
		data, err := json.Marshal(s)
		if err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const fast = 1 << 40 // faster than any processor
	for _, tt := range []struct {
		name string
		kept *speed
		text string
		want func(got int) bool
	}{
		{"never measured", nil, "", func(got int) bool { return got > 0 && got < fast }},
		{"measured faster before", &speed{cpuid.CPU.BrandName, fast}, "", func(got int) bool { return got == fast }},
		{"measured slower before", &speed{cpuid.CPU.BrandName, 1}, "", func(got int) bool { return got > 1 && got < fast }},
		{"of another processor", &speed{"abacus", fast}, "", func(got int) bool { return got < fast }},
		{"damaged", nil, "{", func(got int) bool { return got > 0 && got < fast }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "speed")
			if tt.kept != nil {
				keep(file, *tt.kept)
			}
			if tt.text != "" {
				if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := Speed(file)
			if err != nil || !tt.want(got) {
				t.Errorf("Speed returned %d, %v", got, err)
			}
			if again, err := Speed(file); err != nil || again < got {
				t.Errorf("then got %d, %v, less than %d", again, err, got)
			}
		})
	}
}

func TestParseLoad(t *testing.T) {
	for _, tt := range []struct {
		text string
		want float64
	}{
		{"3.00 2.51 2.04 3/771 9191\n", 1.5},
		{"0.00 0.01 0.05 1/1 1\n", 0},
		{"", 0},
		{"NaN 1 1", 0},
		{"-1 1 1", 0},
	} {
		if got := parseLoad(tt.text, 2); got != tt.want {
			t.Errorf("%q: got %v, want %v", tt.text, got, tt.want)
		}
	}
}
