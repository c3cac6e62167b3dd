// Package homedir manages the home of a peer: the folder that holds its identity, state and cache. It also
// holds the lock that keeps a second peer out, and the log of a detached peer.
//
//	config.yaml    options, read by p2pboot, p2prun and p2phalt
//	identity       Ed25519 private key, mode 0600; determines the peer ID
//	history        total running time, and the number of shutdowns without
//	               a drain; see docs/reliability.md
//	speed          best measured speed of one processor
//	ports          listening ports chosen by the system
//	peers-NETWORK.json  known peers of a network
//	journal        jobs that have run here, their submitters, and their resource use
//	lock           held while a peer runs; contains its peer ID and process ID
//	control.sock   control socket, mode 0600, while a peer runs
//	http-password  password of the status page (Config.HTTP), mode 0600
//	networks/NAME/ token: the invitation to a private network, mode 0600;
//	               owner: the network owner's private key, in the home that
//	               created the network
//	cache/         staged files by digest
//	scratch/       scratch folders of running processes
//	modules/       compiled WebAssembly modules by digest
//	engine         copy of the WebAssembly engine that the owner has configured
//	jobs/          resumable jobs: see package peer/job/submit
//	log            log of a peer that was started with --detach
//
// The kernel releases the lock when the process ends for any reason. A lock file or socket that a killed
// peer leaves behind therefore does not prevent the next start. The processes of jobs do not inherit the
// lock's descriptor.
package homedir
