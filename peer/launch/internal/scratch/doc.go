// Package scratch lays out the folders in which processes run, and removes them.
//
//	<root>/<job>/program/<name>     the executable, shared by the job's processes here
//	<root>/<job>/compile/           working folder of the compiler of a module
//	<root>/<job>/<rank>.<replica>/  working folder of one process: its inputs, its output files
//	<root>/.stale-<random>/         what an earlier peer has left of a job
//
// Nothing outside <root> is ever removed, and nothing that a process leaves in
// its folder, such as folders without permissions, folders in folders without end,
// or symbolic links, keeps it from being removed or leads out of it. Whoever removes has made sure that the
// processes are gone.
package scratch
