package engine

// SetFlowLimit changes flowLimit until restore is called.
func SetFlowLimit(bytes int) (restore func()) {
	before := flowLimit
	flowLimit = bytes
	return func() { flowLimit = before }
}
