package machine

import "math"

// Unlimited is the value of a limit that is not set.
const Unlimited = math.MaxUint64
