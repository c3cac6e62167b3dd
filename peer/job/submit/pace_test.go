package submit

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	at := func(seconds float64) time.Time { return time.Unix(0, int64(seconds*1e9)) }
	type came struct {
		at    float64
		count int64
	}
	tests := map[string]struct {
		came    []came
		rate    float64
		left    float64 // with a total of 1000
		stalled bool
	}{
		"nothing":                    {},
		"one sample":                 {came: []came{{1, 500}}},
		"steady":                     {came: []came{{0, 0}, {1, 100}, {2, 200}}, rate: 100, left: 8},
		"all at once":                {came: []came{{0, 0}, {0, 100}}},
		"many a moment":              {came: []came{{0, 0}, {0.01, 1}, {0.02, 2}, {0.03, 3}, {4, 400}}, rate: 100, left: 6},
		"over":                       {came: []came{{0, 0}, {1, 1000}}, rate: 1000},
		"of late only":               {came: []came{{0, 0}, {1, 700}, {12, 700}, {22, 800}}, rate: 10, left: 20},
		"stalled":                    {came: []came{{0, 0}, {1, 700}, {12, 700}, {23, 700}}, stalled: true},
		"not for long":               {came: []came{{0, 700}, {1, 700}}},
		"restarted":                  {came: []came{{0, 0}, {1, 900}, {2, 0}, {3, 100}}, rate: 100, left: 9},
		"one sample after a restart": {came: []came{{0, 0}, {1, 900}, {2, 0}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var p pace
			for _, c := range test.came {
				p.take(at(c.at), c.count)
			}
			if rate, left, stalled := p.rate(), p.left(1000), p.stalled(); rate != test.rate || left != test.left || stalled != test.stalled {
				t.Errorf("got %v a second, %v left, stalled %v; want %v, %v, %v", rate, left, stalled, test.rate, test.left, test.stalled)
			}
		})
	}
}
