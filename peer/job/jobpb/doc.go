// Package jobpb contains the messages of a job's control stream between the submitter's side (peer/job/submit) and
// the peers that run the job (peer/launch).
package jobpb

//go:generate protoc --go_out=. --go_opt=paths=source_relative job.proto
