package faultdetect_test

import (
	"fmt"
	"time"

	"github.com/p2pmpi/p2pmpi/faultdetect"
)

// Of two members, one never speaks. After the time that it is given to start, the
// other suspects it, asks it, and fails it.
func ExampleDetector() {
	const period = 500 * time.Millisecond
	d, err := faultdetect.New(faultdetect.Config{Members: 2, Self: 0, Period: period, Offset: 1000})
	if err != nil {
		fmt.Println(err)
		return
	}
	for now := time.Duration(0); now < 30*period; now += period / faultdetect.TicksPerPeriod {
		for _, v := range d.Tick(now).Verdicts {
			fmt.Printf("after %d periods member %d is %v\n", now/period, v.Member, v.State)
		}
	}
	// Output:
	// after 22 periods member 1 is suspect
	// after 23 periods member 1 is failed
}
