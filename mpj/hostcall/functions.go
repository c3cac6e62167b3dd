package hostcall

import "github.com/p2pmpi/p2pmpi/mpj/internal/engine"

// Name is the module name of the functions. It contains the version of the interface.
const Name = "p2pmpi_1"

// A Function is a function that a module may import.
type Function struct {
	Name string
	// Params holds the types of the parameters: i for i32, I for i64. Returns reports whether the
	// function returns an i32.
	Params  string
	Returns bool

	call func(*Process, arguments) uint32
}

// Functions lists the functions that a host must provide.
var Functions = []Function{
	{"join", "ii", true, (*Process).join},
	{"finalize", "i", true, (*Process).finalize},
	{"close", "", false, (*Process).leave},
	{"abort", "iii", false, (*Process).abort},
	{"fail", "", false, (*Process).fail},
	{"next", "Ii", true, (*Process).next},
	{"error_text", "ii", true, (*Process).errorText},
	{"take", "iii", true, (*Process).take},
	{"send", "iiiiiii", true, (*Process).send},
	{"isend", "iiiiiii", true, (*Process).isend},
	{"recv", "iiiiiii", true, (*Process).recv},
	{"irecv", "iiiiii", true, (*Process).irecv},
	{"recv_whole", "iiiiii", true, (*Process).recvWhole},
	{"sendrecv", "iiiiiiiiiii", true, (*Process).sendrecv},
	{"swap", "iiiiiiiiii", true, (*Process).swap},
	{"exchange", "iiiiiii", true, (*Process).exchange},
	{"wait", "iii", true, (*Process).wait},
	{"cancel", "i", true, (*Process).cancelRequest},
	{"waitany", "iiii", true, one((*engine.Engine).Waitany)},
	{"waitsome", "iiiii", true, some((*engine.Engine).Waitsome)},
	{"testany", "iiii", true, one((*engine.Engine).Testany)},
	{"testsome", "iiiii", true, some((*engine.Engine).Testsome)},
	{"testall", "iiii", true, (*Process).testall},
	{"wait_until", "iii", true, (*Process).waitUntil},
	{"probe_until", "iiiiii", true, (*Process).probeUntil},
	{"give_up", "i", false, (*Process).giveUp},
	{"begin", "", true, (*Process).begin},
	{"finish", "i", false, (*Process).finish},
	{"probe", "iiiii", true, (*Process).probe},
	{"iprobe", "iiiiii", true, (*Process).iprobe},
	{"mprobe", "iiiiii", true, (*Process).mprobe},
	{"improbe", "iiiiii", true, (*Process).improbe},
	{"imrecv", "iiii", true, (*Process).imrecv},
	{"choose", "iIii", true, (*Process).choose},
	{"wtime", "ii", true, (*Process).wtime},
	{"random_seed", "ii", true, (*Process).randomSeed},
	{"flush", "i", true, (*Process).flush},
	{"unmatched", "ii", true, (*Process).unmatched},
	{"checkpoint", "ii", true, (*Process).beginCheckpoint},
	{"checkpoint_end", "iiiii", true, (*Process).endStep},
	{"checkpoint_write", "ii", true, (*Process).writeState},
	{"checkpoint_read", "ii", true, (*Process).readState},
	{"printed", "ii", true, (*Process).printed},
	{"skip", "ii", true, (*Process).skip},
	{"forget", "i", false, (*Process).forget},
	{"abandon", "i", false, (*Process).abandon},
}
