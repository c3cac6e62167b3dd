// Package job is the submitter's side of a job: it finds and reserves slots,
// stages the files, starts the processes, watches them, and ends with an answer
// or a reason.
//
//	Run: discover -> reserve -> stage -> start -> watch -> collect -> release
//	                                              |
//	   control streams of the job's peers --------+   one each, open all the time
//	   fault detector (gossip among the peers) ---+
//	                                              v
//	                        Watch (who lives, who is done) -> views -> peers
//	                        Emission (output once) ---------> the user
//
// The submitter is the one authority on the job's view: whatever is heard of a
// process, from its peer, from a broken control stream or from the detector,
// becomes true for the job only by a new view, and views are numbered (promise
// V1). The job does not outlive its submitter; the peers end it when the
// control stream ends. An agreed view that outlives the submitter has its place
// behind Watch.
//
// Watch and Emission are pure cores. Submitter is the thin service that owns the
// streams and the clock.
package job
