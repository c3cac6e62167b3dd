package engine

import "time"

// SetFlowLimit changes flowLimit until restore is called.
func SetFlowLimit(bytes int) (restore func()) {
	before := flowLimit
	flowLimit = bytes
	return func() { flowLimit = before }
}

// SetPatience changes patience until restore is called.
func SetPatience(d time.Duration) (restore func()) {
	before := patience
	patience = d
	return func() { patience = before }
}

// SetPastLimit changes pastLimit until restore is called.
func SetPastLimit(bytes int) (restore func()) {
	before := pastLimit
	pastLimit = bytes
	return func() { pastLimit = before }
}
