// Package report turns the output of contenders, round by round, into tables, ratios and plots.
//
//	Results.Add(round, contender, line) ──► Latency, Collectives, … tables
//	                                   ├──► Targetsratios
//	                                   └──► Plot                  SVG files
//
// All figures are medians over the rounds of a run, with the minimum and maximum in brackets. A
// ratio is the ratio of two medians; its brackets contain the minimum and maximum of the ratios
// within one round.
package report
